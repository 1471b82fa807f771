"""Shared by benchmarks: timing with median and spread, plain tables, the folder for charts."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

RESULTS = Path(__file__).parent / "results"


class Timing(NamedTuple):
    """Seconds per call."""

    median: float
    p90: float
    calls: int


def timed(action: Callable[[], object], seconds: float = 1.0, least: int = 5, most: int = 5_000) -> Timing:
    """Measure calls for about `seconds`, after one warm-up call."""
    action()
    spent: list[float] = []
    deadline = time.perf_counter() + seconds
    while len(spent) < least or (time.perf_counter() < deadline and len(spent) < most):
        began = time.perf_counter()
        action()
        spent.append(time.perf_counter() - began)
    return Timing(float(np.median(spent)), float(np.quantile(spent, 0.9)), len(spent))


def duration(seconds: float) -> str:
    """Return a duration with three digits and a fitting unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in plain text; the first column is left-aligned, the others right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join([first, *others])

    return "\n".join([f"\n{title}", line(header), line(["-" * width for width in widths]), *map(line, rows)])
