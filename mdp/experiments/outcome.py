"""What an experiment leaves: rows for a CSV file, a table to print, a picture."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mdp.experiments.lab import Lab

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Sequence[Any]  # named tuples of one kind, with at least one; their fields are the columns


@dataclass(frozen=True)
class Experiment:
    """How one is made: measured, then told as a table and as a picture of the same rows."""

    title: str
    measured: Callable[[Lab], Rows]
    shown: Callable[[Rows], str]
    drawn: Callable[[Rows], "Figure"]


class Outcome(NamedTuple):
    """One that was made, and where its files are."""

    name: str
    title: str
    rows: Rows
    table: str
    csv: Path
    picture: Path
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "rows": [row._asdict() for row in self.rows],
            "csv": str(self.csv),
            "picture": str(self.picture),
            "seconds": self.seconds,
        }


def write_csv(rows: Rows, path: Path) -> None:
    """What is not known is left empty."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0]._fields)
        writer.writerows([_rounded(cell) for cell in row] for row in rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In plain text; the first column is left-aligned, the others right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, rows)])


def number(value: float | None, digits: int = 2, spread: float | None = None) -> str:
    """With its standard error, if there is one; a dash for what is not known."""
    if value is None:
        return "-"
    return f"{value:,.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")


def by(rows: Rows, field: str) -> Mapping[Any, list[Any]]:
    """Rows with one value of a field each, in the order in which the values first come."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault(getattr(row, field), []).append(row)
    return found


def _rounded(cell: Any) -> Any:
    return f"{cell:.6g}" if isinstance(cell, float) else cell
