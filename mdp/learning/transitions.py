"""From node counts to how often one became another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdp.errors import InvalidLog, SingleState
from mdp.learning.logs import Ints, Times, text
from mdp.learning.node_counts import NodeCounts
from mdp.learning.recipe import REPEATS, checked_choice

NO_HOUR = -1


@dataclass(frozen=True, eq=False)
class Transitions:
    """`before[i]` nodes became `after[i]` so many `times[i]`, having begun in hour `hours[i]` of the day.

    `least` and `most` are the fewest and the most nodes seen. The hour is `NO_HOUR` where it is not known. What a
    planner knows when it moves to some nodes is the hour of now, so that is what a transition is filed under, and not
    the hour of the migration that ends it.
    """

    before: Ints
    after: Ints
    hours: Ints
    times: Ints
    least: int
    most: int
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.least == self.most:
            raise SingleState(self.least)
        if not self.times.sum():
            raise InvalidLog("no two node counts follow each other without a gap. Give a log with fewer gaps.")

    def check_within(self, low: int, high: int) -> None:
        if self.least < low or self.most > high:
            raise InvalidLog(
                f"the log has {self.least} to {self.most} nodes, the range is {low} to {high}. "
                "Widen the range, or leave it out."
            )

    def table(self, low: int, high: int, hour: int | None = None) -> Ints:
        """Counts by (before, after), in one hour of the day or in all."""
        counts = np.zeros((high - low + 1, high - low + 1), np.int64)
        these = slice(None) if hour is None else self.hours == hour
        np.add.at(counts, (self.before[these] - low, self.after[these] - low), self.times[these])
        return counts


def transitions(counts: NodeCounts, repeats: str = "ignore") -> Transitions:
    """Between neighbours of one run; O(counts)."""
    checked_choice("repeats", repeats, REPEATS)
    nodes, runs = counts.nodes, counts.runs
    hours = hours_of(counts.times) if counts.times is not None else np.full(len(nodes), NO_HOUR)
    if repeats == "ignore":  # what is left of a stay is its beginning
        begins = np.ones(len(nodes), np.bool_)
        begins[1:] = (nodes[1:] != nodes[:-1]) | (runs[1:] != runs[:-1])
        nodes, runs, hours = nodes[begins], runs[begins], hours[begins]
    known = runs[1:] == runs[:-1]
    before, after, hour = nodes[:-1][known], nodes[1:][known], hours[:-1][known]
    least, most = int(nodes.min()), int(nodes.max())
    return Transitions(before, after, hour, np.ones(len(before), np.int64), least, most, _origin(counts, repeats))


def hours_of(times: Times) -> Ints:
    """Of the day, on the log's own clock."""
    hours: Ints = times.astype("datetime64[h]").astype(np.int64) % 24
    return hours


def span(first: Any, last: Any, counts: int) -> dict[str, Any]:
    return {"first": text(first), "last": text(last), "counts": counts}


def _origin(counts: NodeCounts, repeats: str) -> dict[str, Any]:
    when = {"counts": len(counts)} if counts.times is None else span(counts.times[0], counts.times[-1], len(counts))
    return {**counts.origin, **when, "repeats": repeats}
