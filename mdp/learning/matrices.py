"""The front doors: from node counts, or from a log, to a matrix."""

from collections.abc import Mapping, Sequence
from typing import Any

from mdp.errors import InvalidLog
from mdp.learning.hourly import HOURS, HourlyMatrices
from mdp.learning.logs import Log
from mdp.learning.node_counts import NodeCounts, node_counts
from mdp.learning.recipe import Recipe, checked_amount, checked_range
from mdp.learning.smoothing import PRIOR, prior, smoothed
from mdp.learning.transitions import Transitions, transitions
from mdp.matrix import TransitionMatrix

LEAST_OBSERVATIONS = 20  # of an hour of the day, below which its matrix would be mostly noise
SHRINKAGE = 16.0  # observations that the overall matrix counts in a row of an hour; see docs/learning.md


def learn(
    counts: Sequence[int] | NodeCounts,
    low: int | None = None,
    high: int | None = None,
    *,
    repeats: str = "ignore",
    smoothing: float = 0.0,
    origin: Mapping[str, Any] | None = None,
) -> TransitionMatrix:
    """M[n, n'] = (times that n' followed n) / (times that anything did), over all of `low` to `high`.

    Without a range it is that of the counts. `repeats="ignore"` (the default, paper 003, section 6) takes equal
    neighbours for one stay, so that the diagonal is 0; that is right for counts sampled in time. With "rebalance" they
    are migrations at the same number, which is right for a list of migrations. Rows never seen are a prior made of
    their neighbours, and `smoothing` is how many observations that prior counts in the other rows.
    """
    low, high = checked_range(low, high)
    checked_amount("smoothing", smoothing)
    given = counts if isinstance(counts, NodeCounts) else NodeCounts(counts)
    return matrix_of(transitions(given, repeats), low, high, smoothing, origin)


def learn_hourly(
    counts: NodeCounts,
    low: int | None = None,
    high: int | None = None,
    *,
    repeats: str = "ignore",
    smoothing: float = 0.0,
    shrinkage: float = SHRINKAGE,
    least_observations: int = LEAST_OBSERVATIONS,
    origin: Mapping[str, Any] | None = None,
) -> HourlyMatrices:
    """A matrix for each hour of the day in which a stay began, and the overall one, which is its prior.

    An hour has few observations a row, so the overall matrix counts as `shrinkage` observations in each of its rows.
    """
    low, high = checked_range(low, high)
    for name, value in (("smoothing", smoothing), ("shrinkage", shrinkage), ("least_observations", least_observations)):
        checked_amount(name, value)
    if counts.times is None:
        raise InvalidLog(
            "these node counts have no times, so that nothing is known of hours. Give NodeCounts with times."
        )
    found = transitions(counts, repeats)
    return hourly_of(found, low, high, smoothing, origin, shrinkage=shrinkage, least_observations=least_observations)


def learn_from(log: Log, recipe: Recipe) -> TransitionMatrix:
    """From (time, load) or (time, nodes), as the recipe says."""
    return matrix_of(transitions(node_counts(log, recipe), recipe.repeats), recipe.low, recipe.high, recipe.smoothing)


def learn_hourly_from(log: Log, recipe: Recipe) -> HourlyMatrices:
    """The same for every hour of the day."""
    return hourly_of(transitions(node_counts(log, recipe), recipe.repeats), recipe.low, recipe.high, recipe.smoothing)


def matrix_of(
    found: Transitions,
    low: int | None,
    high: int | None,
    smoothing: float,
    origin: Mapping[str, Any] | None = None,
) -> TransitionMatrix:
    """From transitions, wherever they were counted."""
    low, high = low or found.least, high or found.most
    found.check_within(low, high)
    seen = found.table(low, high)
    believed = prior(seen, diagonal=found.origin["repeats"] == "rebalance")
    facts = {
        **found.origin,
        "low": low,
        "high": high,
        "smoothing": float(smoothing),
        "prior": PRIOR,
        "observations": int(seen.sum()),
        "never_seen": [low + row for row, count in enumerate(seen.sum(axis=1)) if not count],
    }
    return TransitionMatrix(
        range(low, high + 1), smoothed(seen, believed, smoothing), seen, {**facts, **(origin or {})}
    )


def hourly_of(
    found: Transitions,
    low: int | None,
    high: int | None,
    smoothing: float,
    origin: Mapping[str, Any] | None = None,
    *,
    shrinkage: float = SHRINKAGE,
    least_observations: int = LEAST_OBSERVATIONS,
) -> HourlyMatrices:
    overall = matrix_of(found, low, high, smoothing, origin)
    low, high = overall.nodes[0], overall.nodes[-1]

    def of_hour(hour: int) -> TransitionMatrix | None:
        seen = found.table(low, high, hour)
        if not seen.any() or seen.sum() < least_observations:
            return None
        facts = {"hour": hour, "shrinkage": float(shrinkage), "prior": "the matrix of all hours"}
        return TransitionMatrix(overall.nodes, smoothed(seen, overall.probabilities, shrinkage), seen, facts)

    return HourlyMatrices(overall, [of_hour(hour) for hour in range(HOURS)])
