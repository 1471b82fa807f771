"""From loads to node counts: scaling, rounding and hysteresis."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdp.errors import InvalidLog
from mdp.learning import Log, NodeCounts, Recipe, Scaling, count_nodes
from mdp.learning.scaling import apply_hysteresis, round_nodes

needs = st.lists(st.floats(8, 16), min_size=1, max_size=50).map(lambda numbers: np.array(numbers))


def counts(*hourly_loads: float, **choices: Any) -> list[int]:
    hours = 3600 * np.arange(len(hourly_loads))
    return list(count_nodes(Log(hours, hourly_loads), Recipe(8, 16, **choices)).nodes.tolist())


def test_the_smallest_load_is_the_lowest_count_and_the_largest_the_highest() -> None:
    assert counts(100, 500, 300, 900) == [8, 12, 10, 16]


def test_what_is_beyond_the_quantiles_is_clipped() -> None:
    loads = [*range(101), 10_000]
    assert counts(*loads)[:-1] == [8] * 101
    clipped = counts(*loads, quantiles=(0.0, 0.98))
    assert clipped[0] == 8
    assert clipped[50] == 12
    assert clipped[-1] == 16


def test_the_scale_of_one_log_can_be_used_on_another() -> None:
    scaling = Scaling(8, 16, 0, 80)
    found = count_nodes(Log([0, 3600, 7200], [40, 10, 1000]), Recipe(8, 16), scaling)
    assert found.nodes.tolist() == [12, 9, 16]


def test_loads_that_never_change_are_refused() -> None:
    with pytest.raises(InvalidLog, match="nothing to scale"):
        counts(5, 5, 5)


def test_a_half_is_rounded_up_and_sums_in_another_order_do_not_matter() -> None:
    halves = np.array([8.5, 9.5, 8.5 - 1e-12, 8.5 + 1e-12, 8.49])
    assert round_nodes(halves, "nearest").tolist() == [9, 10, 9, 9, 8]
    wholes = np.array([9.0, 9 + 1e-12, 9 - 1e-12, 9.01])
    assert round_nodes(wholes, "up").tolist() == [9, 9, 9, 10]


@given(needs, st.sampled_from(["nearest", "up"]))
def test_without_hysteresis_every_window_is_rounded(needed: np.ndarray, rounding: str) -> None:
    assert apply_hysteresis(needed, rounding, 0.0).tolist() == round_nodes(needed, rounding).tolist()


@given(needs, st.floats(0.01, 3))
def test_with_hysteresis_a_count_changes_only_when_the_load_has_left_its_band(needed: np.ndarray, width: float) -> None:
    found = apply_hysteresis(needed, "nearest", width)
    targets = round_nodes(needed, "nearest")
    assert found[0] == targets[0]
    for (before, after), need, target in zip(pairwise(found.tolist()), needed[1:], targets[1:], strict=True):
        inside = abs(need - before) <= 0.5 + width + 1e-9
        assert after == (before if inside else target)


@given(needs, st.floats(0.01, 3))
def test_rounding_up_never_leaves_too_few_nodes(needed: np.ndarray, width: float) -> None:
    assert (apply_hysteresis(needed, "up", width) >= needed - 1e-9).all()


@given(needs, st.floats(0.01, 1))
def test_hysteresis_never_adds_changes(needed: np.ndarray, width: float) -> None:
    def changes(found: np.ndarray) -> int:
        return int((np.diff(found) != 0).sum())

    assert changes(apply_hysteresis(needed, "nearest", width)) <= changes(round_nodes(needed, "nearest"))


def test_hysteresis_begins_anew_after_a_gap() -> None:
    hours = 3600 * np.array([0, 1, 2, 10, 11])
    log = Log(hours, [0, 80, 35, 35, 80])  # 35 needs 11.5 nodes
    found = count_nodes(log, Recipe(8, 16, hysteresis=4.0, gaps="split", combine="mean"))
    assert found.nodes.tolist() == [8, 16, 16, 12, 12]
    assert found.runs.tolist() == [0, 0, 0, 1, 1]


def test_node_counts_in_a_log_are_taken_as_they_are() -> None:
    log = Log([60, 0, 5000, 5060], [9, 8, 12, 12], "nodes")
    assert count_nodes(log, Recipe()).nodes.tolist() == [8, 9, 12, 12]


def test_node_counts_in_windows_are_the_last_of_each() -> None:
    log = Log([0, 60, 3600, 3 * 3600], [8, 9, 12, 10], "nodes")
    found = count_nodes(log, Recipe(window_seconds=3600, gaps="hold"))
    assert found.nodes.tolist() == [9, 12, 12, 10]


def test_migrations_are_counts_without_repeats() -> None:
    assert NodeCounts([8, 8, 9, 9, 8, 8]).migrations().tolist() == [8, 9, 8]


def test_counts_need_as_many_times() -> None:
    with pytest.raises(InvalidLog, match="2 node counts"):
        NodeCounts([8, 9], np.array(["2015-03-01"], "datetime64[us]"))
