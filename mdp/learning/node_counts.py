"""Node counts over time, recorded or derived from loads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mdp.errors import InvalidLog
from mdp.learning.logs import Ints, Log, Moment, Times, find_cut
from mdp.learning.recipe import Recipe
from mdp.learning.scaling import Scaling, apply_hysteresis
from mdp.learning.windows import Windows, merge_duplicates, split_into_windows


@dataclass(frozen=True, eq=False)
class NodeCounts:
    """`nodes[i]` from `times[i]` on, if times are known.

    Invariant: at least one count, all of them whole and at least 1. Between counts of different `runs` there is a gap,
    so no transition is learned across; `origin` records how they were made.
    """

    nodes: Ints
    times: Times | None
    runs: Ints
    origin: Mapping[str, Any]

    def __init__(
        self,
        nodes: Sequence[int] | Ints,
        times: Times | None = None,
        runs: Sequence[int] | Ints | None = None,
        origin: Mapping[str, Any] | None = None,
    ) -> None:
        counts = _whole(nodes)
        breaks = np.zeros(len(counts), np.int64) if runs is None else np.asarray(runs, np.int64)
        if len(breaks) != len(counts) or (times is not None and len(times) != len(counts)):
            raise InvalidLog(f"{len(counts)} node counts need as many times and runs. Give one of each a count.")
        object.__setattr__(self, "nodes", counts)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "runs", breaks)
        object.__setattr__(self, "origin", dict(origin or {}))

    def __len__(self) -> int:
        return len(self.nodes)

    def split(self, at: Moment) -> tuple[Self, Self]:
        """The counts before `at`, and the rest: learn from the one, evaluate on the other."""
        if self.times is None:
            raise InvalidLog("these node counts have no times, so time cannot split them. Slice the list instead.")
        cut = find_cut(self.times, at)
        parts = slice(None, cut), slice(cut, None)
        before, after = (type(self)(self.nodes[p], self.times[p], self.runs[p], self.origin) for p in parts)
        return before, after

    def migrations(self) -> Ints:
        """The counts without repeats, as a migration sequence; runs are concatenated."""
        counts: Ints = self.nodes[np.diff(self.nodes, prepend=0) != 0]
        return counts


def count_nodes(log: Log, recipe: Recipe, scaling: Scaling | None = None) -> NodeCounts:
    """Convert a log to node counts; `scaling` may be that of another log, such as the month before."""
    if log.holds == "nodes":
        return _count_logged_nodes(log, recipe.for_nodes())
    recipe = recipe.for_loads()
    windows = split_into_windows(log, recipe)
    scaling = scaling or Scaling.fit(windows.values, *recipe.range, recipe.quantiles)
    needed = scaling.nodes(windows.values)
    stretches = np.split(needed, np.flatnonzero(np.diff(windows.runs)) + 1)
    counts = np.concatenate([apply_hysteresis(stretch, recipe.rounding, recipe.hysteresis) for stretch in stretches])
    return NodeCounts(counts, windows.starts, windows.runs, describe_origin(log.source, log.holds, recipe, scaling))


def describe_origin(source: str, holds: str, recipe: Recipe, scaling: Scaling | None) -> dict[str, Any]:
    """The origin that a matrix records, with and without Spark."""
    scaled = {} if scaling is None else {"scaling": scaling.to_dict()}
    return {"source": source, "holds": holds, **recipe.to_dict(), **scaled}


def _count_logged_nodes(log: Log, recipe: Recipe) -> NodeCounts:
    origin = describe_origin(log.source, log.holds, recipe, None)
    if recipe.window_seconds is None:
        times, values = merge_duplicates(log, recipe.duplicates)
        return NodeCounts(values.astype(np.int64), times.view("datetime64[us]"), None, origin)
    windows: Windows = split_into_windows(log, recipe)
    return NodeCounts(windows.values.astype(np.int64), windows.starts, windows.runs, origin)


def _whole(nodes: Sequence[int] | Ints) -> Ints:
    try:
        given = np.asarray(nodes, np.float64)
    except (TypeError, ValueError) as cause:
        raise InvalidLog(f"node counts are not numbers: {cause}. Give whole numbers of at least 1.") from cause
    if given.ndim != 1 or not given.size:
        raise InvalidLog("there are no node counts. Give them in a row, at least two different ones.")
    if (bad := ~(np.isfinite(given) & (given >= 1) & (given == np.floor(given)))).any():
        place = int(np.argmax(bad))
        raise InvalidLog(f"node count {place + 1} is {given[place]:g}. Give whole numbers of at least 1.")
    counts = given.astype(np.int64)
    counts.setflags(write=False)
    return counts
