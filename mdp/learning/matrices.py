"""Learn a matrix from node counts, or from a log."""

from collections.abc import Mapping, Sequence
from typing import Any

from mdp.errors import InvalidLog
from mdp.learning.hourly import HOURS, HourlyMatrices
from mdp.learning.logs import Log
from mdp.learning.node_counts import NodeCounts, count_nodes
from mdp.learning.recipe import Recipe, check_amount, check_range
from mdp.learning.smoothing import PRIOR, prior, smooth
from mdp.learning.transitions import Transitions, count_transitions
from mdp.matrix import TransitionMatrix

LEAST_OBSERVATIONS = 20  # of an hour of the day, below which its matrix would be mostly noise
SHRINKAGE = 16.0  # weight of the overall matrix in a row of an hour, in observations; see docs/learning.md


def learn(
    counts: Sequence[int] | NodeCounts,
    low: int | None = None,
    high: int | None = None,
    *,
    repeats: str = "ignore",
    smoothing: float = 0.0,
    origin: Mapping[str, Any] | None = None,
) -> TransitionMatrix:
    """Learn M[n, n'] = (times that n' followed n) / (times that any count did), for node counts `low` to `high`.

    The range defaults to that of the counts. `repeats="ignore"` (the default, paper 003, section 6) treats equal
    neighbours as one stay, so that the diagonal is 0; use it for counts sampled in time. With "rebalance" they are
    migrations at the same number; use it for a list of migrations. Rows without observations get a prior derived from
    their neighbours, and `smoothing` is the weight of that prior in the other rows, in observations.
    """
    low, high = check_range(low, high)
    check_amount("smoothing", smoothing)
    given = counts if isinstance(counts, NodeCounts) else NodeCounts(counts)
    return build_matrix(count_transitions(given, repeats), low, high, smoothing, origin)


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
    """Learn a matrix per hour of the day in which a stay began, and the overall one, which is their prior.

    An hour has few observations per row, so the overall matrix weighs `shrinkage` observations in each of its rows.
    """
    low, high = check_range(low, high)
    for name, value in (("smoothing", smoothing), ("shrinkage", shrinkage), ("least_observations", least_observations)):
        check_amount(name, value)
    if counts.times is None:
        raise InvalidLog("these node counts have no times, so their hours are unknown. Give NodeCounts with times.")
    found = count_transitions(counts, repeats)
    return build_hourly_matrices(
        found, low, high, smoothing, origin, shrinkage=shrinkage, least_observations=least_observations
    )


def learn_from_log(log: Log, recipe: Recipe) -> TransitionMatrix:
    """Learn from records of (time, load) or (time, nodes), as the recipe says."""
    return build_matrix(
        count_transitions(count_nodes(log, recipe), recipe.repeats), recipe.low, recipe.high, recipe.smoothing
    )


def learn_hourly_from_log(log: Log, recipe: Recipe) -> HourlyMatrices:
    """The same for every hour of the day."""
    return build_hourly_matrices(
        count_transitions(count_nodes(log, recipe), recipe.repeats), recipe.low, recipe.high, recipe.smoothing
    )


def build_matrix(
    found: Transitions,
    low: int | None,
    high: int | None,
    smoothing: float,
    origin: Mapping[str, Any] | None = None,
) -> TransitionMatrix:
    """Build the matrix from counted transitions, here or on Spark."""
    low, high = low or found.least, high or found.most
    found.check_within(low, high)
    seen = found.count_matrix(low, high)
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
    return TransitionMatrix(range(low, high + 1), smooth(seen, believed, smoothing), seen, {**facts, **(origin or {})})


def build_hourly_matrices(
    found: Transitions,
    low: int | None,
    high: int | None,
    smoothing: float,
    origin: Mapping[str, Any] | None = None,
    *,
    shrinkage: float = SHRINKAGE,
    least_observations: int = LEAST_OBSERVATIONS,
) -> HourlyMatrices:
    overall = build_matrix(found, low, high, smoothing, origin)
    low, high = overall.nodes[0], overall.nodes[-1]

    def of_hour(hour: int) -> TransitionMatrix | None:
        seen = found.count_matrix(low, high, hour)
        if not seen.any() or seen.sum() < least_observations:
            return None
        facts = {"hour": hour, "shrinkage": float(shrinkage), "prior": "the matrix of all hours"}
        return TransitionMatrix(overall.nodes, smooth(seen, overall.probabilities, shrinkage), seen, facts)

    return HourlyMatrices(overall, [of_hour(hour) for hour in range(HOURS)])
