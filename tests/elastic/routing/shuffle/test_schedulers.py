"""Schedulers of batches, against a row by row reference, brute force and each other."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import InvalidJob
from elastic.routing.shuffle import SCHEDULERS, NodeLoads, SenderShare
from elastic.routing.shuffle.schedulers import schedule_greedily, schedule_greedily_by_reference
from elastic.routing.shuffle.sketch import Floats

COSTS = st.lists(st.one_of(st.integers(0, 4).map(float), st.floats(0, 100)), max_size=40).map(
    lambda costs: np.array(costs, np.float64)
)
LOADS = st.integers(1, 6).flatmap(
    lambda count: st.builds(
        lambda loads, slowness: NodeLoads(np.array(loads), np.array(slowness)),
        st.lists(st.integers(0, 5).map(float), min_size=count, max_size=count),
        st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=count, max_size=count),
    )
)
SHARES = st.integers(1, 9).flatmap(
    lambda senders: st.builds(SenderShare, st.integers(0, senders - 1), st.just(senders))
)
BOUNDS: dict[str, Callable[[int], float]] = {"posg": lambda k: 2 - 1 / k, "posg-batch": lambda k: 4 / 3 - 1 / (3 * k)}


@given(COSTS, LOADS, SHARES)
def test_the_compiled_greedy_choice_equals_the_reference(costs: Floats, loads: NodeLoads, share: SenderShare) -> None:
    compiled, plain = schedule_greedily(costs, loads, share), schedule_greedily_by_reference(costs, loads, share)
    assert compiled.nodes.tolist() == plain.nodes.tolist()
    assert compiled.loads.tolist() == plain.loads.tolist()


@pytest.mark.parametrize("name", SCHEDULERS)
@given(COSTS, LOADS, SHARES)
def test_every_scheduler_places_every_row_and_accounts_for_all_costs(
    name: str, costs: Floats, loads: NodeLoads, share: SenderShare
) -> None:
    before = loads.seconds.copy()
    nodes, after = SCHEDULERS[name](costs, loads, share)
    count = len(before)
    assert len(nodes) == len(costs)
    assert not len(nodes) or (nodes.min() >= 0 and nodes.max() < count)
    added = np.bincount(nodes, costs, count) * loads.slowness * share.senders
    assert after == pytest.approx(before + added)
    assert loads.seconds.tolist() == before.tolist()


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("seed", range(8))
def test_makespans_keep_their_bounds(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs, nodes = rng.integers(1, 20, 7).astype(float), int(rng.integers(2, 4))
    choices = map(list, product(range(nodes), repeat=len(costs)))
    best = min(np.bincount(choice, costs, nodes).max() for choice in choices)
    assert SCHEDULERS[name](costs, NodeLoads.idle(nodes)).loads.max() <= BOUNDS[name](nodes) * best + 1e-9


def test_longest_first_reaches_the_best_makespan_where_rows_in_turn_do_not() -> None:
    costs = np.array([1.0, 1.0, 2.0])
    assert SCHEDULERS["posg"](costs, NodeLoads.idle(2)).loads.max() == 3
    assert SCHEDULERS["posg-batch"](costs, NodeLoads.idle(2)).loads.max() == 2
    assert SCHEDULERS["posg-batch"](costs, NodeLoads.idle(2)).nodes.tolist() == [1, 1, 0]


def test_longest_first_tells_costs_apart_that_differ_by_more_than_one_per_cent() -> None:
    costs = np.array([1e-6 * 1.01**power for power in range(2_000)])
    order = np.random.default_rng(0).permutation(len(costs))
    shuffled = SCHEDULERS["posg-batch"](costs[order], NodeLoads.idle(3))
    descending = SCHEDULERS["posg"](costs[::-1], NodeLoads.idle(3))
    assert shuffled.nodes[np.argsort(-costs[order])].tolist() == descending.nodes.tolist()


def test_a_row_goes_where_it_ends_first_not_where_the_load_is_least() -> None:
    loads = NodeLoads(np.array([0.0, 1.0]), np.array([5.0, 1.0]))
    assert schedule_greedily(np.array([1.0]), loads).nodes.tolist() == [1]


def test_round_robin_takes_turns_whatever_the_costs() -> None:
    nodes = SCHEDULERS["round-robin"](np.array([9.0, 1, 1, 1]), NodeLoads.idle(3), SenderShare(1, 3)).nodes
    assert nodes.tolist() == [1, 2, 0, 1]


def test_senders_break_ties_at_nodes_that_are_spread_evenly() -> None:
    assert [SenderShare(sender, 4).first_node(16) for sender in range(4)] == [0, 4, 8, 12]
    assert [SenderShare(sender, 6).first_node(3) for sender in range(6)] == [0, 0, 1, 1, 2, 2]
    first = [schedule_greedily(np.ones(2), NodeLoads.idle(8), SenderShare(one, 4)).nodes.tolist() for one in range(4)]
    assert first == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("name", ["posg", "posg-batch"])
@pytest.mark.parametrize("senders", [1, 3, 8])
def test_senders_that_start_from_the_same_loads_fill_the_gaps_together(name: str, senders: int) -> None:
    rng = np.random.default_rng(senders)
    costs, start = rng.uniform(1, 3, 8_000), np.array([0.0, 500.0, 2_000.0, 0.0])
    total = start.copy()
    for sender in range(senders):
        mine = costs[sender::senders]
        chosen = SCHEDULERS[name](mine, NodeLoads(start, np.ones(4)), SenderShare(sender, senders)).nodes
        total += np.bincount(chosen, mine, 4)
    assert total.max() / total.mean() < 1.005


def test_a_sender_outside_its_share_is_refused() -> None:
    for sender, senders in (3, 3), (-1, 2), (0, 0):
        with pytest.raises(InvalidJob, match="Number senders"):
            SenderShare(sender, senders)


@pytest.mark.parametrize(
    ("seconds", "slowness"),
    [([], []), ([0.0], [0.0]), ([0.0], [1.0, 1.0]), ([np.inf], [1.0]), ([0.0], [np.nan]), ([[0.0]], [[1.0]])],
)
def test_loads_that_make_no_sense_are_refused(seconds: list[float], slowness: list[float]) -> None:
    with pytest.raises(InvalidJob, match="slowness above 0"):
        NodeLoads(np.array(seconds), np.array(slowness))


def test_without_numba_the_same_rows_are_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    costs, loads = np.random.default_rng(1).random(50), NodeLoads.idle(4)
    expected = SCHEDULERS["posg"](costs, loads).nodes.tolist()
    monkeypatch.setattr("elastic.routing.shuffle.schedulers.load_compiled", lambda _module, _name: None)
    assert SCHEDULERS["posg"](costs, loads).nodes.tolist() == expected
