"""The cells of the matrix: two runs of one job, and how the first ends."""

from dataclasses import dataclass
from typing import Any

from tests.restarts.covering import cover_pairs

# What operations.md lets a restart change. Each setting is a factor of the first run and one of the second.
_CHANGES: dict[str, tuple[Any, ...]] = {
    "nodes": (2, 1, 3),
    "trigger": ({}, {"processingTime": "150 milliseconds"}, {"availableNow": True}),
    "sink": ("store", "none", "memory", "parquet"),
    "max_pending_batches": (4, 1),
    "compression": ("auto", "none", "zstd"),
    "snapshot_seconds": (60.0, 0.3),
    "on_error": ("fail", "skip"),
    "null_keys": ("fail", "keep", "drop"),
    "watermark_delay": ("0 seconds", "5 seconds"),
}
ENDS = ("stop", "stop without drain", "kill")
MOVES = ("nothing", "checkpoint", "store")

FACTORS: dict[str, tuple[Any, ...]] = {
    **{f"first {name}": values for name, values in _CHANGES.items()},
    **{f"second {name}": values for name, values in _CHANGES.items()},
    "end": ENDS,
    "moved": MOVES,
}


@dataclass(frozen=True)
class Cell:
    """The arguments of both runs, how the first one ends, and what is moved to another folder between them."""

    first: dict[str, Any]
    second: dict[str, Any]
    end: str
    moved: str

    @property
    def title(self) -> str:
        changed = [
            f"{name} {_short(before)}>{_short(self.second[name])}"
            for name, before in self.first.items()
            if before != self.second[name]
        ]
        return "; ".join([self.end, f"moved {self.moved}", *changed])


def _short(value: Any) -> str:
    return "|".join(value) or "default" if isinstance(value, dict) else str(value)


def _cell(row: dict[str, Any]) -> Cell:
    first, second = ({name: row[f"{which} {name}"] for name in _CHANGES} for which in ("first", "second"))
    return Cell(first, second, row["end"], row["moved"])


CELLS = [_cell(row) for row in cover_pairs(FACTORS)]
