"""Results of experiments: rows for a CSV file, a table to print, a chart."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Lab = TypeVar("_Lab")  # what the experiments of a paper share

Rows = Sequence[Any]  # named tuples of one kind, with at least one; their fields are the columns


@dataclass(frozen=True)
class Experiment(Generic[_Lab]):
    """How an experiment is measured in a lab, and how its rows become a table and a chart."""

    title: str
    measure: Callable[[_Lab], Rows]
    format_rows: Callable[[Rows], str]
    draw: Callable[[Rows], "Figure"]
    note: str = ""  # what the figure in the paper shows and this one does not, and why


class ExperimentResult(NamedTuple):
    """The rows, the table and the files of one experiment."""

    name: str
    title: str
    rows: Rows
    table: str
    csv: Path
    picture: Path
    seconds: float
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "rows": [row._asdict() for row in self.rows],
            "csv": str(self.csv),
            "picture": str(self.picture),
            "seconds": self.seconds,
            "note": self.note,
        }


def write_csv(rows: Rows, path: Path) -> None:
    """Write rows to a CSV file; unknown values are empty."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0]._fields)
        writer.writerows([_round_cell(cell) for cell in row] for row in rows)


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table in plain text; the first column is left-aligned, the others right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, rows)])


def format_number(value: float | None, digits: int = 2, spread: float | None = None) -> str:
    """Format a number, with its standard error if given; None is a dash."""
    if value is None:
        return "-"
    return f"{value:,.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")


def format_value(value: float) -> str:
    """A parameter without an exponent: 0.08, 1.5, 15, 1,000,000."""
    return f"{value:,.0f}" if value >= 1_000 else f"{value:g}"


def group_by(rows: Rows, field: str) -> Mapping[Any, list[Any]]:
    """Group rows by a field, in order of first appearance."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault(getattr(row, field), []).append(row)
    return found


def _round_cell(cell: Any) -> Any:
    return f"{cell:.6g}" if isinstance(cell, float) else cell
