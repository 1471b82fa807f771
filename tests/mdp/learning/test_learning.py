"""From node counts to a matrix: counted as the paper says, against a count by hand."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdp.errors import InvalidLog, InvalidRecipe, SingleState
from mdp.learning import NodeCounts, count_nodes, generate_tweet_volume, learn, learn_from_log
from mdp.learning.recipe import Recipe
from mdp.learning.transitions import count_transitions

counts_of_nodes = st.lists(st.integers(2, 7), min_size=2, max_size=40).filter(lambda counts: len(set(counts)) > 1)


def by_hand(counts: list[int], repeats: str) -> Counter[tuple[int, int]]:
    """Every neighbouring pair, without equal ones if they are no migration."""
    pairs = pairwise(counts)
    return Counter((a, b) for a, b in pairs if repeats == "rebalance" or a != b)


@given(counts_of_nodes, st.sampled_from(["ignore", "rebalance"]))
def test_what_was_seen_is_what_a_count_by_hand_finds(counts: list[int], repeats: str) -> None:
    matrix = learn(counts, 2, 7, repeats=repeats)
    seen = by_hand(counts, repeats)
    assert {(a, b): matrix.observed[a - 2, b - 2] for a, b in seen} == dict(seen)
    assert matrix.observations == seen.total() == matrix.origin["observations"]


@given(counts_of_nodes, st.sampled_from(["ignore", "rebalance"]))
def test_without_smoothing_a_row_that_was_seen_is_its_frequencies(counts: list[int], repeats: str) -> None:
    matrix = learn(counts, repeats=repeats)
    for row, seen in enumerate(matrix.observed):
        if seen.any():
            assert matrix.probabilities[row] == pytest.approx(seen / seen.sum())


@given(counts_of_nodes, st.sampled_from(["ignore", "rebalance"]), st.floats(0, 100))
def test_every_row_sums_to_one_and_the_diagonal_is_for_rebalances(counts: list[int], repeats: str, s: float) -> None:
    matrix = learn(counts, 1, 9, repeats=repeats, smoothing=s)
    assert matrix.nodes == tuple(range(1, 10))
    assert matrix.probabilities.sum(axis=1) == pytest.approx(np.ones(9))
    if repeats == "ignore":
        assert not np.diagonal(matrix.probabilities).any()
    never = matrix.observed.sum(axis=1) == 0
    assert matrix.origin["never_seen"] == [nodes for nodes, row in zip(matrix.nodes, never, strict=True) if row]
    off_diagonal = ~np.eye(9, dtype=bool)
    assert (matrix.probabilities[never] > 0)[off_diagonal[never]].all()  # where nothing is known all is possible


@given(counts_of_nodes)
def test_much_smoothing_makes_rows_the_prior_and_little_leaves_them_alone(counts: list[int]) -> None:
    plain, little, much, prior_alone = (learn(counts, 2, 7, smoothing=s).probabilities for s in (0, 1e-9, 1e9, 1e12))
    assert little == pytest.approx(plain, abs=1e-7)
    assert much == pytest.approx(prior_alone, abs=1e-6)


def test_equal_neighbours_are_one_stay_or_rebalances() -> None:
    hours = [8, 8, 8, 9, 9, 8]
    assert learn(hours).probabilities.tolist() == [[0, 1], [1, 0]]
    rebalanced = learn(hours, repeats="rebalance")
    assert rebalanced.probability(8, 8) == pytest.approx(2 / 3)
    assert rebalanced.probability(9, 9) == 0.5


def test_nothing_is_learned_across_a_break() -> None:
    matrix = learn(NodeCounts([8, 9, 12, 11], runs=[0, 0, 1, 1]))
    assert matrix.observations == 2
    assert matrix.observed[1, 4] == 0  # 9 -> 12


def test_a_stay_on_both_sides_of_a_break_is_two_stays() -> None:
    found = count_transitions(NodeCounts([8, 9, 9, 10], runs=[0, 0, 1, 1]))
    assert list(zip(found.before, found.after, strict=True)) == [(8, 9), (9, 10)]


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ([], "no node counts"),
        ([8, 0], "node count 2 is 0"),
        ([8, 9.5], "node count 2 is 9.5"),
        ([8, float("nan")], "node count 2 is nan"),
        (["eight"], "not numbers"),
        ([[8, 9]], "no node counts"),
    ],
)
def test_what_are_no_node_counts_is_refused(counts: Any, says: str) -> None:
    with pytest.raises(InvalidLog, match=says):
        learn(counts)


@pytest.mark.parametrize("counts", [[8], [8, 8, 8]])
@pytest.mark.parametrize("repeats", ["ignore", "rebalance"])
def test_a_single_state_is_refused(counts: list[int], repeats: str) -> None:
    with pytest.raises(SingleState, match="never leaves 8 nodes") as refused:
        learn(counts, 8, 16, repeats=repeats)
    assert refused.value.nodes == 8


def test_counts_that_never_meet_are_refused() -> None:
    with pytest.raises(InvalidLog, match="without a gap"):
        learn(NodeCounts([8, 9], runs=[0, 1]))


def test_counts_outside_the_range_are_refused() -> None:
    with pytest.raises(InvalidLog, match="has 7 to 9 nodes, the range is 8 to 16"):
        learn([7, 9], 8, 16)


@pytest.mark.parametrize(
    "options",
    [{"low": 8}, {"low": 9, "high": 9}, {"low": 0, "high": 9}, {"repeats": "often"}, {"smoothing": -1}],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecipe):
        learn([8, 9], **options)


def test_the_setting_of_the_paper_is_a_recipe_with_a_range() -> None:
    """Section 6: tweets of an hour, scaled to 8 to 16 nodes; one month to learn from, the next to evaluate on."""
    counts = count_nodes(generate_tweet_volume(seed=3), Recipe(8, 16))
    assert (counts.nodes.min(), counts.nodes.max()) == (8, 16)
    month, next_month = counts.split("2015-03-26")
    matrix = learn(month, 8, 16)
    assert matrix.nodes == tuple(range(8, 17))
    assert matrix.observations == len(month.migrations()) - 1
    assert matrix.origin["last"] < "2015-03-26" < str(next_month.times[1] if next_month.times is not None else "")


def test_a_matrix_says_where_it_comes_from() -> None:
    origin = learn_from_log(
        generate_tweet_volume(seed=1, days=20), Recipe(8, 16, rounding="up", hysteresis=0.2, smoothing=2)
    ).origin
    assert origin["source"].startswith("tweet_volume(seed=1")
    assert (origin["low"], origin["high"], origin["rounding"], origin["hysteresis"]) == (8, 16, "up", 0.2)
    assert (origin["first"], origin["last"]) == ("2015-02-26T22:00:00", "2015-03-18T20:00:00")
    assert (origin["window_seconds"], origin["combine"], origin["smoothing"]) == (3600, "sum", 2)
    assert origin["observations"] > 0
    assert learn([8, 9], origin={"source": "me"}).origin["source"] == "me"


def test_counts_without_times_are_not_split_by_time() -> None:
    with pytest.raises(InvalidLog, match="no times"):
        NodeCounts([8, 9]).split("2015-03-26")
