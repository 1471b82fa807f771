"""A matrix for every hour of the day."""

import numpy as np
import pytest

from mdp.errors import InvalidLog, InvalidMatrix
from mdp.learning import (
    HourlyMatrices,
    NodeCounts,
    Recipe,
    generate_tweet_volume,
    learn,
    learn_hourly,
    learn_hourly_from_log,
)
from mdp.learning.node_counts import count_nodes

COUNTS = count_nodes(generate_tweet_volume(seed=5), Recipe(8, 16, quantiles=(0.01, 0.99)))


def commuting(days: int) -> NodeCounts:
    """8 nodes; 12 from 9 o'clock, 10 from 17, and 8 again from 22."""
    counts = [8] * 9 + [12] * 8 + [10] * 5 + [8] * 2
    times = np.datetime64("2015-03-01", "us") + np.arange(24 * days) * np.timedelta64(1, "h")
    return NodeCounts(counts * days, times)


def test_an_hour_knows_what_follows_a_migration_in_it() -> None:
    matrices = learn_hourly(commuting(60), 8, 12, shrinkage=0)
    assert matrices.learned_hours == (9, 17, 22)
    assert matrices.at(9).probability(12, 10) == 1
    assert matrices.at(17).probability(10, 8) == 1
    assert matrices.at(22).probability(8, 12) == 1


def test_an_hour_with_too_few_observations_is_answered_with_all_hours() -> None:
    matrices = learn_hourly(commuting(10), 8, 12, least_observations=20)
    assert matrices.learned_hours == ()
    assert matrices.at(9) is matrices.overall


@pytest.mark.parametrize("repeats", ["ignore", "rebalance"])
def test_hours_add_up_to_the_whole(repeats: str) -> None:
    matrices = learn_hourly(COUNTS, repeats=repeats, least_observations=0)
    total = sum(matrices.at(hour).observed for hour in matrices.learned_hours)
    assert np.array_equal(total, matrices.overall.observed)
    assert matrices.overall == learn(COUNTS, repeats=repeats)


def test_an_hour_is_a_mean_of_what_it_saw_and_of_all_hours() -> None:
    matrices = learn_hourly(COUNTS, shrinkage=16, least_observations=0)
    own = matrices.at(15)
    seen = own.observed.sum(axis=1, keepdims=True)
    expected = (own.observed + 16 * matrices.overall.probabilities) / (seen + 16)
    assert own.probabilities == pytest.approx(expected)


def test_a_row_never_seen_in_an_hour_is_that_of_all_hours() -> None:
    matrices = learn_hourly(commuting(60), 8, 12, shrinkage=0)
    assert matrices.at(9).probabilities[0] == pytest.approx(matrices.overall.probabilities[0])


def test_a_log_is_learned_by_the_hour_with_the_same_recipe() -> None:
    recipe = Recipe(8, 16, quantiles=(0.01, 0.99))
    assert learn_hourly_from_log(generate_tweet_volume(seed=5), recipe).overall.nodes == tuple(range(8, 17))


def test_matrices_survive_as_json() -> None:
    matrices = learn_hourly(COUNTS)
    assert HourlyMatrices.from_json(matrices.to_json()) == matrices


def test_what_are_no_matrices_of_a_day_is_refused() -> None:
    overall, other = learn([8, 9]), learn([8, 10])
    with pytest.raises(InvalidMatrix, match="23 hours"):
        HourlyMatrices(overall, [None] * 23)
    with pytest.raises(InvalidMatrix, match="hour 3 has other node counts"):
        HourlyMatrices(overall, [overall] * 3 + [other] + [None] * 20)
    with pytest.raises(InvalidMatrix, match="no hour 24"):
        HourlyMatrices(overall, [None] * 24).at(24)
    for text in ("{", "[]", '{"format": "hourly-matrices-1"}', overall.to_json()):
        with pytest.raises(InvalidMatrix):
            HourlyMatrices.from_json(text)


def test_counts_without_times_have_no_hours() -> None:
    with pytest.raises(InvalidLog, match="no times"):
        learn_hourly(NodeCounts([8, 9, 8]))
