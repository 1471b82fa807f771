"""Keys with standbys: FTLB, switch-first and TaskB."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migration import InvalidInput, InvalidPlan, InvalidStandbys, KeysInfeasible, TooManyEntries
from migration.keys import (
    KEY_STRATEGIES,
    STANDBY_STRATEGIES,
    KeyLoads,
    KeyPlan,
    KeyStandbys,
    hash_standbys,
    plan_keys,
)
from migration.keys.problem import KeyProblem, KeyProposal, NotPlaced
from migration.keys.reference import REFERENCES
from migration.keys.workloads import KeyWorkload
from tests.migration.keys.instances import random_loads, random_pinned, zipf_loads

SHARES = (0.0, 0.1, 0.3, 0.5, 0.9, 1.0, 1.5)


def random_standbys(rng: np.random.Generator, loads: KeyLoads, nodes: int) -> KeyStandbys:
    """Up to two standbys a key, by service level; some of them elsewhere than home, some missing, some too many."""
    most = min(int(rng.integers(0, 3)), nodes - 1)
    counts: list[int] = rng.integers(0 if rng.random() < 0.5 else most, most + 1, loads.keys).tolist()
    home = hash_standbys(loads.hashes, loads.home, nodes, counts, seed=int(rng.integers(9)))
    current = np.full((loads.keys, min(2, max(nodes - 1, 0))), -1)
    kept = rng.random() < 0.5
    for row, own in enumerate(loads.current.tolist()):
        there = [node for node in home[row].tolist() if node >= 0] if kept else []
        if not kept or own in there:
            others = [node for node in range(nodes) if node != own]
            there = rng.permutation(others)[: rng.integers(0, current.shape[1] + 1)].tolist()
        current[row, : len(there)] = there
    return KeyStandbys(home, current, float(rng.choice(SHARES)))


def random_standby_problem(rng: np.random.Generator, most_keys: int = 40) -> KeyProblem:
    loads, nodes = random_loads(rng, most_keys)
    theta, most_entries = float(rng.choice([0.0, 0.05, 0.2, 0.5, 1.0])), int(rng.choice([1, 3, 10, 3_000]))
    return KeyProblem.of(
        loads, nodes, theta, most_entries, random_pinned(rng, loads, nodes), random_standbys(rng, loads, nodes)
    )


def outcome(strategy: Any, problem: KeyProblem, options: dict[str, float]) -> tuple[Any, ...]:
    try:
        found: KeyProposal = strategy(problem, **options)
    except NotPlaced as cause:
        return (cause.row,)
    assert found.standbys is not None
    return found.destination.tolist(), found.standbys.tolist()


@pytest.mark.parametrize("name", ["ftlb", "switch-first"])
@given(seed=st.integers(0, 2**32))
def test_a_compiled_strategy_equals_its_reference_to_the_last_bit(name: str, seed: int) -> None:
    for offset in range(6):
        rng = np.random.default_rng([seed, offset])
        problem = random_standby_problem(rng)
        options = {"beta": float(rng.choice([0.0, 1.0, 1.3, 1.5])), "gamma": float(rng.choice([0.0, 1.0, 2.0]))}
        expected = outcome(REFERENCES[name], problem, options)
        assert outcome(KEY_STRATEGIES[name], problem, options) == expected, f"seed {seed}, {offset}"


@pytest.mark.parametrize("name", ["ftlb", "switch-first"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_a_strategy_equals_its_reference_on_zipf_loads(name: str, share: float) -> None:
    loads = zipf_loads(1_500, 15, away=0.1)
    homes = hash_standbys(loads.hashes, loads.home, 15, 2)
    current = np.where(homes == loads.current[:, None], -1, homes)
    for theta in (0.02, 0.2):
        for most_entries in (60, 3_000):
            problem = KeyProblem.of(loads, 15, theta, most_entries, None, KeyStandbys(homes, current, share))
            assert outcome(KEY_STRATEGIES[name], problem, {}) == outcome(REFERENCES[name], problem, {})


@pytest.mark.parametrize("strategy", STANDBY_STRATEGIES)
@given(seed=st.integers(0, 2**32))
def test_a_plan_keeps_actives_and_standbys_apart_within_the_cap_and_states_what_it_costs(
    strategy: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    loads, nodes = random_loads(rng)
    standbys = random_standbys(rng, loads, nodes)
    plan = plan_keys(loads, nodes, 0.3, strategy, 20, standbys=standbys, relax=True)
    assert plan.relaxed == ("relaxed" in plan.reason)
    if plan.relaxed:
        with pytest.raises((KeysInfeasible, TooManyEntries)):
            plan_keys(loads, nodes, 0.3, strategy, 20, standbys=standbys)
    check_plan(plan, loads, standbys, nodes, strategy)


def check_plan(plan: KeyPlan, loads: KeyLoads, standbys: KeyStandbys, nodes: int, strategy: str) -> None:
    assert plan.balanced
    assert plan.copies is not None
    assert plan.relaxed or len(plan.entries) <= plan.most_entries
    active, followers = plan.entries.route(loads.hashes, loads.home, standbys.home)
    places = {int(key): place for place, key in enumerate(loads.hashes)}
    expected = loads.current.copy()
    for move in plan.moves:
        row = places[move.hash]
        expected[row] = plan.nodes.index(move.target)
        held = expected[row] in standbys.current[row]
        assert move.size == (0 if held else loads.size[row])
    assert active.tolist() == expected.tolist()
    assert not (followers == active[:, None]).any()
    new = {(int(key), int(node)) for key, node in zip(plan.copies.hashes, plan.copies.targets, strict=True)}
    assert len(new) == len(plan.copies)
    work = np.zeros(nodes) if not plan.pinned else np.array(plan.pinned)
    for row, key in enumerate(loads.hashes.tolist()):
        there = [node for node in followers[row].tolist() if node >= 0]
        assert len(set(there)) == len(there)
        if strategy != "task-b":
            assert len(there) == standbys.counts[row]
        before = {int(loads.current[row]), *standbys.current[row].tolist()}
        assert {node for one, node in new if one == key} == set(there) - before
        work[active[row]] += loads.work[row]
        for node in there:
            work[node] += standbys.share * loads.work[row]
    assert work == pytest.approx(np.array(plan.loads_after))
    assert plan.cost == pytest.approx(sum(move.size for move in plan.moves))
    assert plan.switches == sum(plan.nodes.index(m.target) in standbys.current[places[m.hash]] for m in plan.moves)
    assert KeyPlan.from_json(plan.to_json()) == plan


def test_a_table_that_is_too_small_is_an_error_that_names_the_smallest_that_works() -> None:
    loads = zipf_loads(3_000, 10)
    standbys = KeyStandbys.hashed(loads, 10, share=0.1)
    for strategy in ("ftlb", "switch-first"):
        with pytest.raises(TooManyEntries) as caught:
            plan_keys(loads, 10, 0.02, strategy, 3, standbys=standbys)
        fewest = caught.value.fewest_entries
        assert len(plan_keys(loads, 10, 0.02, strategy, fewest, standbys=standbys).entries) <= fewest


def trajectory(strategy: str, theta: float, share: float, keys: int = 20_000, intervals: int = 4) -> float:
    """The state that all plans of a stream move, in per cent."""
    workload, moved = KeyWorkload.zipf(keys, 15, seed=1), 0.0
    current = places = None
    for interval in range(intervals + 1):
        loads = workload.loads(current)
        standbys = None
        if strategy in STANDBY_STRATEGIES:
            standbys = KeyStandbys(hash_standbys(loads.hashes, loads.home, 15), places, share)
        problem = KeyProblem.of(loads, 15, theta, 3_000, None, standbys)
        found = KEY_STRATEGIES[strategy](problem)
        assert len(problem.find_overrides(found.destination, found.standbys)) <= 3_000
        moved += problem.critical_size(found.destination) / loads.total_size if interval else 0.0
        current, places = found.destination, found.standbys
        workload = workload.advance(current)
    return 100 * moved


@pytest.mark.parametrize(("theta", "share"), [(0.05, 0.1), (0.08, 0.0), (0.2, 0.1)])
def test_switches_first_move_a_fifth_of_what_mixed_moves_where_standbys_are_cheap(theta: float, share: float) -> None:
    mixed = trajectory("mixed", theta, 0.0)
    assert trajectory("switch-first", theta, share) <= 0.2 * mixed
    assert trajectory("ftlb", theta, 0.0) <= 1.05 * mixed


def test_a_switch_moves_nothing_and_leaves_a_standby_behind() -> None:
    loads = KeyLoads([1, 2, 3], [0, 0, 1], None, [4, 4, 2], [40, 40, 20])
    standbys = KeyStandbys([[1], [1], [0]], share=0.0)
    plan = plan_keys(loads, 2, 0.25, "switch-first", standbys=standbys)
    assert (plan.cost, plan.switches, len(plan.copies or ())) == (0.0, 1, 0)
    assert [(move.hash, move.target, move.size) for move in plan.moves] == [(1, "node-2", 0.0)]
    assert plan.entries.standbys is not None
    assert plan.entries.standbys.tolist() == [[0]]
    assert "switches roles of 1" in str(plan)


def test_missing_standbys_are_made_where_the_second_hash_leads_and_those_too_many_dropped() -> None:
    loads = KeyLoads([1, 2, 3], [0, 1, 2], [0, 0, 2], [1, 1, 1], [10, 20, 30])
    standbys = KeyStandbys([[2, -1], [0, -1], [-1, -1]], [[-1, -1], [-1, -1], [0, 1]], share=0.5)
    plan = plan_keys(loads, 3, 2.0, "ftlb", standbys=standbys)
    assert plan.copies is not None
    assert plan.copies.hashes.tolist() == [1, 2]
    assert plan.copies.targets.tolist() == [2, 1]  # the second hash of key 2 leads to its own node, so it goes home
    assert plan.background_cost == 30
    active, followers = plan.entries.route(loads.hashes, loads.home, standbys.home)
    assert (active.tolist(), followers[2].tolist()) == ([0, 0, 2], [-1, -1])


def test_the_second_hash_spreads_the_standbys_of_a_node_over_all_others() -> None:
    workload = KeyWorkload.zipf(30_000, 10, seed=3)
    homes = hash_standbys(workload.hashes, workload.home, 10, 2)
    assert not (homes == workload.home[:, None]).any()
    assert not (homes[:, 0] == homes[:, 1]).any()
    pairs = np.bincount(workload.home * 10 + homes[:, 0], minlength=100).reshape(10, 10)
    assert np.diag(pairs).sum() == 0
    others = pairs[~np.eye(10, dtype=bool)]
    assert others.min() > 0.75 * 30_000 / 90
    assert (hash_standbys(workload.hashes, workload.home, 10, [0, 1] * 15_000) >= 0).sum() == 15_000


def test_task_b_has_every_standby_on_the_node_after_and_makes_it_anew_when_keys_move() -> None:
    loads = zipf_loads(2_000, 5)
    standbys = KeyStandbys(((loads.home + 1) % 5)[:, None], share=0.3)
    plan = plan_keys(loads, 5, 0.05, "task-b", standbys=standbys)
    active, followers = plan.entries.route(loads.hashes, loads.home, standbys.home)
    assert followers[:, 0].tolist() == ((active + 1) % 5).tolist()
    assert plan.background_cost > 0


@pytest.mark.parametrize(
    ("home", "current", "share", "error"),
    [
        ([[0], [0]], None, 0.5, InvalidStandbys),  # on the key's own node
        ([[1], [2]], None, 0.5, InvalidStandbys),  # no such node
        ([[1]], None, 0.5, InvalidStandbys),  # a row is missing
        ([[1], [0]], [[1]], 0.5, InvalidStandbys),
        ([[1, 1], [0, -1]], None, 0.5, InvalidStandbys),
        ([[-2], [0]], None, 0.5, InvalidStandbys),
        ([["a"], ["b"]], None, 0.5, InvalidStandbys),
        ([1, 0], None, 0.5, InvalidStandbys),
        ([[1], [0]], None, -0.5, InvalidInput),
        ([[1], [0]], None, float("nan"), InvalidInput),
    ],
)
def test_standbys_that_cannot_be_are_refused(home: Any, current: Any, share: float, error: type[Exception]) -> None:
    loads = KeyLoads([1, 2], [0, 1], None, [1, 1])
    with pytest.raises(error):
        plan_keys(loads, 2, 1.0, "ftlb", standbys=KeyStandbys(home, current, share))


def test_bad_options_are_refused() -> None:
    loads = KeyLoads([1, 2], [0, 1], None, [1, 1])
    standbys = KeyStandbys([[1], [0]])
    with pytest.raises(InvalidInput, match="does not plan standbys"):
        plan_keys(loads, 2, standbys=standbys)
    with pytest.raises(InvalidInput, match="KeyStandbys"):
        plan_keys(loads, 2, strategy="ftlb", standbys=[[1], [0]])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="gamma"):
        plan_keys(loads, 2, strategy="ftlb", standbys=standbys, gamma=-1)
    with pytest.raises(InvalidStandbys, match="need 3 nodes"):
        hash_standbys(loads.hashes, loads.home, 2, 2)


def test_a_plan_that_was_edited_is_refused() -> None:
    loads = zipf_loads(200, 4)
    plan = plan_keys(loads, 4, 0.0, "switch-first", relax=True, standbys=KeyStandbys.hashed(loads, 4, share=0.1))
    document = json.loads(plan.to_json())
    assert document["entries"]["targets"]
    target = document["entries"]["targets"][0]
    for change in (
        {"switches": len(plan.moves) + 1},
        {"entry_standbys": [[target], *document["entry_standbys"][1:]]},
        {"entry_standbys": document["entry_standbys"][1:]},
        {"entry_standbys": [[9], *document["entry_standbys"][1:]]},
        {"copies": {"hashes": [1], "targets": [0], "sizes": []}},
    ):
        with pytest.raises(InvalidPlan):
            KeyPlan.from_dict({**document, **change})
