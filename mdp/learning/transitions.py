"""Count the transitions between node counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdp.errors import InvalidLog, SingleState
from mdp.learning.logs import Ints, Times, format_time
from mdp.learning.node_counts import NodeCounts
from mdp.learning.recipe import REPEATS, check_choice

NO_HOUR = -1


@dataclass(frozen=True, eq=False)
class Transitions:
    """`before[i]` nodes became `after[i]` nodes `times[i]` times, in stays that began in hour `hours[i]` of the day.

    `least` and `most` are the fewest and the most nodes observed. The hour is `NO_HOUR` if unknown. It is the hour in
    which the stay began, not ended, because a planner that moves to a node count knows only the current hour.
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

    def count_matrix(self, low: int, high: int, hour: int | None = None) -> Ints:
        """The counts as a matrix over (before, after), for one hour of the day or for all."""
        counts = np.zeros((high - low + 1, high - low + 1), np.int64)
        these = slice(None) if hour is None else self.hours == hour
        np.add.at(counts, (self.before[these] - low, self.after[these] - low), self.times[these])
        return counts


def count_transitions(counts: NodeCounts, repeats: str = "ignore") -> Transitions:
    """Count transitions between neighbours of one run; O(counts)."""
    check_choice("repeats", repeats, REPEATS)
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
    """The hours of the day, on the log's own clock."""
    hours: Ints = times.astype("datetime64[h]").astype(np.int64) % 24
    return hours


def span(first: Any, last: Any, counts: int) -> dict[str, Any]:
    return {"first": format_time(first), "last": format_time(last), "counts": counts}


def _origin(counts: NodeCounts, repeats: str) -> dict[str, Any]:
    when = {"counts": len(counts)} if counts.times is None else span(counts.times[0], counts.times[-1], len(counts))
    return {**counts.origin, **when, "repeats": repeats}
