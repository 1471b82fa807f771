"""The autoscaler on a cluster of paper, with a clock that is turned by hand."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import storage
from elastic.control import (
    Autoscaler,
    Autoscaling,
    Decision,
    Journal,
    Migration,
    Monitor,
    NodeCounters,
    Observation,
    Scaler,
    ScaleRequest,
    Vitals,
)
from elastic.errors import MigrationRunning
from storage.errors import StoreUnavailable
from tests.elastic.control.test_control import TASKS, PaperCluster

WINDOW, COOL_DOWN = 5.0, 20.0


class BusyCluster(PaperCluster):
    """`demand` nodes' worth of work come every second; lost nodes say nothing."""

    def __init__(self, room_for: int = 10) -> None:
        super().__init__(room_for)
        self.demand = 1.0
        self.lost: set[str] = set()
        self._busy: dict[str, float] = {}

    def work(self, seconds: float) -> None:
        working = self.current.nodes
        for node in working:
            self._busy[node] = self._busy.get(node, 0.0) + seconds * min(1.0, self.demand / len(working))

    def vitals(self) -> Vitals:
        up = {node: self._busy.get(node, 0.0) for node in self.nodes - self.lost}
        return Vitals({node: NodeCounters(f"{node}.1", busy, 0) for node, busy in up.items()}, 0, 4)


@dataclass
class World:
    """A job on paper, an autoscaler, and time."""

    asked: Autoscaling
    cluster: BusyCluster = field(default_factory=BusyCluster)
    now: float = 1_000.0

    def __post_init__(self) -> None:
        self.store = storage.open("memory:")
        self.journal = Journal(self.store, "job")
        self.monitor = Monitor(TASKS, clock=lambda: self.now)
        self.scaler = Scaler(self.cluster, self.monitor, self.journal)
        self.autoscaler = self.begun()

    def begun(self, **parts: Any) -> Autoscaler:
        named = {"cluster": self.cluster, "monitor": self.monitor, "scaler": self.scaler, "journal": self.journal}
        return Autoscaler(self.asked, **{**named, **parts}, clock=lambda: self.now)

    def turn(self) -> Decision:
        """One second goes by; a migration that is under way comes to its end, unless the cluster holds it."""
        self.now += 1.0
        self.cluster.work(1.0)
        self.monitor.look(self.cluster)
        decision = self.autoscaler.look()
        current = self.scaler.current
        if current is not None and self.cluster.go.is_set():
            current._over.wait(10)
        return decision

    def turns(self, seconds: float) -> list[int]:
        """Node counts after each."""
        return [(self.turn(), len(self.cluster.current.nodes))[1] for _ in range(round(seconds))]

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        return [record for record in self.journal.read() if record["kind"] in kinds]


def world(demand: float = 1.0, room_for: int = 10, **how: Any) -> World:
    cluster = BusyCluster(room_for)
    cluster.demand = demand
    asked: dict[str, Any] = {"ceiling": 6, "window_seconds": WINDOW, "cool_down_seconds": COOL_DOWN, **how}
    return World(Autoscaling.of(TASKS, **asked), cluster)


def test_a_busy_job_gets_nodes_and_an_idle_one_gives_them_back() -> None:
    busy = world(demand=2.0)
    assert busy.turns(60)[-1] == 4
    busy.cluster.demand = 0.1
    assert busy.turns(60)[-1] == 1
    decided = busy.records("decided")
    # The window that crossed the low mark still held some of the busy time, so it went down in two steps.
    assert [(record["nodes"], record["target"]) for record in decided] == [(2, 4), (4, 2), (2, 1)]
    assert decided[0]["mean_utilisation"] == pytest.approx(1.0)
    assert decided[0]["utilisation"] == pytest.approx({"node-1": 1.0, "node-2": 1.0})
    assert decided[0]["reason"] == "nodes are busy 100% of the time, above the high mark 80%"
    assert decided[0].keys() >= {"at_ms", "policy", "floor", "ceiling", "queue_growth", "batches_ahead", "seconds"}
    assert [record["outcome"] for record in busy.records("ended")] == ["done"] * 3


def test_a_job_that_is_right_is_left_alone_and_nothing_is_written() -> None:
    right = world(demand=1.0)
    assert set(right.turns(100)) == {2}
    assert list(right.journal.read()) == []
    decision = right.autoscaler.last_decision
    assert decision is not None
    assert decision.target == 2
    assert "50%" in decision.reason


def test_nothing_is_decided_before_a_window_was_seen() -> None:
    busy = world(demand=2.0)
    assert busy.autoscaler.last_decision is None
    assert busy.turn().reason == "node-1, node-2 cannot be measured yet"
    assert set(busy.turns(WINDOW - 1)) == {2}
    assert busy.turns(3)[-1] == 4


@given(st.lists(st.floats(0.0, 8.0), min_size=1, max_size=30), st.integers(1, 3), st.integers(3, 8))
def test_changes_are_a_cool_down_apart_and_within_bounds(demands: list[float], floor: int, ceiling: int) -> None:
    changing = world(floor=floor, ceiling=ceiling)
    changed, counts = [], [2]
    for demand in demands:
        changing.cluster.demand = demand
        for _ in range(8):
            counts += changing.turns(1)
            if counts[-1] != counts[-2]:
                changed.append(changing.now)
    assert all(later - earlier >= COOL_DOWN for earlier, later in pairwise(changed))
    assert set(counts[1:]) <= {2, *range(floor, ceiling + 1)}
    assert len(changing.records("decided")) == len(changed)


def test_a_job_outside_its_bounds_is_brought_within_them() -> None:
    low = world(floor=3)
    assert low.turns(40)[-1] == 3
    assert "the floor is 3" in low.records("decided")[0]["reason"]


def test_during_a_cool_down_it_says_what_it_waits_for() -> None:
    busy = world(demand=4.0)
    while len(busy.cluster.current.nodes) == 2:
        busy.turn()
    busy.turns(10)
    decision = busy.autoscaler.last_decision
    assert decision is not None
    assert decision.target == 4
    assert decision.reason.startswith("6 nodes in ")


def test_while_a_migration_is_under_way_it_waits_and_then_cools_down() -> None:
    busy = world(demand=2.0)
    busy.turns(2)
    busy.cluster.go.clear()
    by_hand = busy.scaler.scale(ScaleRequest(nodes=3))
    busy.turns(50)
    assert busy.autoscaler.last_decision == Decision(2, "a migration is under way")
    assert busy.records("decided", "refused") == []
    busy.cluster.go.set()
    assert by_hand.wait(10)
    assert set(busy.turns(COOL_DOWN - 1)) == {3}


def test_a_migration_by_hand_between_two_turns_is_followed_by_a_cool_down() -> None:
    busy = world(demand=1.2)
    busy.turns(10)
    assert busy.scaler.scale(ScaleRequest(nodes=1)).wait(10)
    assert set(busy.turns(COOL_DOWN)) == {1}
    assert busy.turns(3)[-1] == 2


def test_what_is_only_recommended_is_written_once_and_a_change_of_mind_too() -> None:
    careful = world(demand=2.0, recommend_only=True)
    assert set(careful.turns(100)) == {2}
    assert [record["target"] for record in careful.records("recommended")] == [4]
    careful.autoscaler._rest(careful.now)  # so that the change is out of the window when it decides again
    careful.cluster.demand = 1.0
    assert set(careful.turns(100)) == {2}
    recommended = careful.records("recommended")
    assert [(record["nodes"], record["target"]) for record in recommended] == [(2, 4), (2, 2)]
    assert "the right number" in recommended[1]["reason"]
    assert careful.records("decided", "began") == []


def test_a_recommendation_that_was_followed_is_no_change_of_mind() -> None:
    careful = world(demand=2.0, recommend_only=True)
    careful.turns(10)
    assert careful.scaler.scale(ScaleRequest(nodes=4, relax=True)).wait(10)
    careful.turns(60)
    assert [record["target"] for record in careful.records("recommended")] == [4]


def test_a_cluster_without_room_is_asked_again_after_a_cool_down_and_not_before() -> None:
    full = world(demand=2.0, room_for=3)
    assert set(full.turns(WINDOW + 2 + 3 * (COOL_DOWN + 2))) == {2}
    failed = full.records("failed")
    assert 3 <= len(failed) <= 4
    assert {(record["nodes"], record["target"]) for record in failed} == {(2, 4)}
    assert failed[0]["error"].startswith("NoRoom: ")
    full.cluster.demand = 1.0
    full.turns(2 * COOL_DOWN)
    assert full.records("decided")[-1]["target"] == 2  # the change of mind


def test_a_refused_request_is_written_down_and_followed_by_a_cool_down() -> None:
    skewed = world(demand=2.0, ceiling=3, scaling={"relax": False, "tau": 0.0})
    assert set(skewed.turns(WINDOW + 2 + COOL_DOWN)) == {2}
    refused = skewed.records("refused")
    assert [(record["nodes"], record["target"]) for record in refused] == [(2, 3), (2, 3)]
    assert refused[0]["error"].startswith("Infeasible: ")


def test_a_full_cluster_refuses_the_autoscaler_which_asks_again_after_a_cool_down() -> None:
    full = world(demand=2.0)
    full.cluster.slots = 3
    assert set(full.turns(WINDOW + 2 + COOL_DOWN)) == {2}
    refused = full.records("refused")
    assert [(record["nodes"], record["target"]) for record in refused] == [(2, 4), (2, 4)]
    assert refused[0]["error"].startswith("TooFewSlots: ")
    full.cluster.slots = None
    assert full.turns(COOL_DOWN + 5)[-1] == 4


def test_a_request_that_comes_too_late_is_written_down_and_followed_by_a_cool_down() -> None:
    class Taken(Scaler):
        def scale(self, *_: Any, **__: Any) -> Migration:
            raise MigrationRunning

    late = world(demand=2.0)
    late.scaler = Taken(late.cluster, late.monitor, late.journal)
    late.autoscaler = late.begun()
    late.turns(WINDOW + COOL_DOWN)
    assert [record["error"].partition(":")[0] for record in late.records("refused")] == ["MigrationRunning"]


def test_a_policy_that_raises_is_written_down_and_asked_again_after_a_cool_down() -> None:
    asked: list[float] = []

    class Broken:
        def decide(self, observation: Observation) -> Decision:
            asked.append(observation.at)
            raise ZeroDivisionError("division by zero")

    broken = world(policy=Broken())
    broken.turns(40)
    failed = broken.records("failed")
    assert [(record["policy"], record["error"]) for record in failed[:1]] == [
        ("Broken", "ZeroDivisionError: division by zero")
    ]
    assert all(later - earlier >= COOL_DOWN for earlier, later in pairwise(asked))
    assert len(failed) == len(asked) == 2


def test_a_store_that_is_away_changes_nothing_and_does_not_end_it() -> None:
    class Away(Journal):
        away = True

        def append(self, kind: str, **facts: Any) -> int:
            if self.away:
                raise StoreUnavailable("memory:", "put", "journal", "away")
            return super().append(kind, **facts)

    busy = world(demand=2.0)
    journal = Away(busy.store, "job")
    busy.autoscaler = busy.begun(journal=journal)
    assert set(busy.turns(30)) == {2}
    journal.away = False
    assert busy.turns(COOL_DOWN)[-1] == 4


def test_while_a_node_is_away_nothing_is_decided_until_its_return_is_out_of_the_window() -> None:
    hurt = world(demand=2.0)
    hurt.cluster.lost = {"node-2"}
    assert set(hurt.turns(50)) == {2}
    assert hurt.autoscaler.last_decision == Decision(2, "node-2 cannot be measured yet")
    hurt.cluster.lost = set()
    assert set(hurt.turns(WINDOW)) == {2}
    assert hurt.turns(3)[-1] == 4


def test_a_stopped_autoscaler_says_so() -> None:
    stopped = world().autoscaler
    stopped.start()
    assert not stopped.is_stopped
    stopped.stop()
    assert stopped.is_stopped
