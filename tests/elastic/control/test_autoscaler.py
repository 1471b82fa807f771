"""The autoscaler on a fake cluster, with a clock under the test's control."""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import storage
from elastic.control import (
    Autoscaler,
    AutoscalerSettings,
    Decision,
    JobJournal,
    KeyMigration,
    KeyRequest,
    Monitor,
    NodeCounters,
    Observation,
    Scaler,
    ScaleRequest,
    TaskMigration,
    Vitals,
)
from elastic.errors import KeysCannotBeSplit, KeysNotMeasured, MigrationInProgress
from migration import KeyLoads, plan_keys
from migration.errors import KeysInfeasible
from storage.errors import StoreUnavailable
from storage.journal import JournalRecord
from tests.elastic.control.test_control import TASKS, PaperCluster

WINDOW, COOL_DOWN = 5.0, 20.0


class BusyCluster(PaperCluster):
    """Every second brings the work of `demand` nodes; lost nodes report nothing."""

    def __init__(self, room_for: int = 10) -> None:
        super().__init__(room_for)
        self.demand = 1.0
        self.shares: dict[str, float] = {}  # of the demand, by node; equal ones if empty
        self.lost: set[str] = set()
        self.unsplit_stage: str | None = None
        self.split_calls: list[tuple[str | None, str]] = []
        self._busy: dict[str, float] = {}

    def find_unsplit(self) -> str | None:
        return self.unsplit_stage

    def split_keys(self, stage: str | None, splits: str) -> None:
        if stage == "gone":
            raise KeysCannotBeSplit(stage)
        self.split_calls.append((stage, splits))

    def work(self, seconds: float) -> None:
        working = self.current.nodes
        for node in working:
            share = self.shares.get(node, 1 / len(working))
            self._busy[node] = self._busy.get(node, 0.0) + seconds * min(1.0, self.demand * share)

    def vitals(self) -> Vitals:
        up = {node: self._busy.get(node, 0.0) for node in self.nodes - self.lost}
        return Vitals({node: NodeCounters(f"{node}.1", busy, 0) for node, busy in up.items()}, 0, 4)


@dataclass
class World:
    """A fake job, an autoscaler, and a clock."""

    settings: AutoscalerSettings
    cluster: BusyCluster = field(default_factory=BusyCluster)
    now: float = 1_000.0

    def __post_init__(self) -> None:
        self.store = storage.open("memory:")
        self.journal = JobJournal(self.store, "job")
        self.monitor = Monitor(TASKS, clock=lambda: self.now)
        self.scaler = Scaler(self.cluster, self.monitor, self.journal)
        self.autoscaler = self.create_autoscaler()

    def create_autoscaler(self, **parts: Any) -> Autoscaler:
        defaults = {"cluster": self.cluster, "monitor": self.monitor, "scaler": self.scaler, "journal": self.journal}
        return Autoscaler(self.settings, **{**defaults, **parts}, clock=lambda: self.now)

    def step(self) -> Decision:
        """Advance one second and poll; then wait for a migration in progress, unless the cluster blocks it."""
        self.now += 1.0
        self.cluster.work(1.0)
        self.monitor.poll(self.cluster)
        decision = self.autoscaler.poll()
        current = self.scaler.current
        if current is not None and self.cluster.go.is_set():
            current._over.wait(10)
        return decision

    def steps(self, seconds: float) -> list[int]:
        """Advance second by second; return the node count after each."""
        return [(self.step(), len(self.cluster.current.nodes))[1] for _ in range(round(seconds))]

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        return [record for record in self.journal.read() if record["kind"] in kinds]


def world(demand: float = 1.0, room_for: int = 10, **how: Any) -> World:
    cluster = BusyCluster(room_for)
    cluster.demand = demand
    arguments: dict[str, Any] = {"ceiling": 6, "window_seconds": WINDOW, "cool_down_seconds": COOL_DOWN, **how}
    return World(AutoscalerSettings.from_arguments(TASKS, **arguments), cluster)


def test_a_busy_job_gets_nodes_and_an_idle_job_releases_them() -> None:
    busy = world(demand=2.0)
    assert busy.steps(60)[-1] == 4
    busy.cluster.demand = 0.1
    assert busy.steps(60)[-1] == 1
    decided = busy.records("decided")
    # The first window below the low threshold still holds some busy time, so there are two steps down.
    assert [(record["nodes"], record["target"]) for record in decided] == [(2, 4), (4, 2), (2, 1)]
    assert decided[0]["mean_utilisation"] == pytest.approx(1.0)
    assert decided[0]["utilisation"] == pytest.approx({"node-1": 1.0, "node-2": 1.0})
    assert decided[0]["reason"] == "utilisation 100% is above the high threshold 80%"
    assert decided[0].keys() >= {"at_ms", "policy", "floor", "ceiling", "queue_growth", "batches_ahead", "seconds"}
    assert [record["outcome"] for record in busy.records("ended")] == ["done"] * 3


def test_a_job_of_the_right_size_is_not_changed_and_nothing_is_recorded() -> None:
    right = world(demand=1.0)
    assert set(right.steps(100)) == {2}
    assert list(right.journal.read()) == []
    decision = right.autoscaler.last_decision
    assert decision is not None
    assert decision.target == 2
    assert "50%" in decision.reason


def test_there_is_no_decision_before_the_first_window() -> None:
    busy = world(demand=2.0)
    assert busy.autoscaler.last_decision is None
    assert busy.step().reason == "no measurements of node-1, node-2 yet"
    assert set(busy.steps(WINDOW - 1)) == {2}
    assert busy.steps(3)[-1] == 4


@given(st.lists(st.floats(0.0, 8.0), min_size=1, max_size=30), st.integers(1, 3), st.integers(3, 8))
def test_changes_are_a_cool_down_apart_and_within_bounds(demands: list[float], floor: int, ceiling: int) -> None:
    changing = world(floor=floor, ceiling=ceiling)
    changed, counts = [], [2]
    for demand in demands:
        changing.cluster.demand = demand
        for _ in range(8):
            counts += changing.steps(1)
            if counts[-1] != counts[-2]:
                changed.append(changing.now)
    assert all(later - earlier >= COOL_DOWN for earlier, later in pairwise(changed))
    assert set(counts[1:]) <= {2, *range(floor, ceiling + 1)}
    assert len(changing.records("decided")) == len(changed)


def test_a_job_outside_its_bounds_is_scaled_into_them() -> None:
    low = world(floor=3)
    assert low.steps(40)[-1] == 3
    assert "the floor is 3" in low.records("decided")[0]["reason"]


def test_during_a_cool_down_the_decision_names_the_target_that_waits() -> None:
    busy = world(demand=4.0)
    while len(busy.cluster.current.nodes) == 2:
        busy.step()
    busy.steps(10)
    decision = busy.autoscaler.last_decision
    assert decision is not None
    assert decision.target == 4
    assert re.match(r"cooling down for \d+ s; the target would be 6 nodes: ", decision.reason)


def test_the_autoscaler_waits_for_a_migration_in_progress_and_then_cools_down() -> None:
    busy = world(demand=2.0)
    busy.steps(2)
    busy.cluster.go.clear()
    manual = busy.scaler.scale(ScaleRequest(nodes=3))
    busy.steps(50)
    assert busy.autoscaler.last_decision == Decision(2, "a migration is in progress")
    assert busy.records("decided", "refused") == []
    busy.cluster.go.set()
    assert manual.wait(10)
    assert set(busy.steps(COOL_DOWN - 1)) == {3}


def test_a_manual_migration_between_two_polls_is_followed_by_a_cool_down() -> None:
    busy = world(demand=1.2)
    busy.steps(10)
    assert busy.scaler.scale(ScaleRequest(nodes=1)).wait(10)
    assert set(busy.steps(COOL_DOWN)) == {1}
    assert busy.steps(3)[-1] == 2


def test_a_recommendation_is_recorded_once_and_so_is_its_withdrawal() -> None:
    careful = world(demand=2.0, recommend_only=True)
    assert set(careful.steps(100)) == {2}
    assert [record["target"] for record in careful.records("recommended")] == [4]
    careful.autoscaler._pause(careful.now)  # the next decision then sees no load from before the change
    careful.cluster.demand = 1.0
    assert set(careful.steps(100)) == {2}
    recommended = careful.records("recommended")
    assert [(record["nodes"], record["target"]) for record in recommended] == [(2, 4), (2, 2)]
    assert "needs no change" in recommended[1]["reason"]
    assert careful.records("decided", "began") == []


def test_a_recommendation_that_was_followed_is_not_withdrawn() -> None:
    careful = world(demand=2.0, recommend_only=True)
    careful.steps(10)
    assert careful.scaler.scale(ScaleRequest(nodes=4, relax=True)).wait(10)
    careful.steps(60)
    assert [record["target"] for record in careful.records("recommended")] == [4]


def test_a_request_that_found_no_room_is_repeated_after_a_cool_down() -> None:
    full = world(demand=2.0, room_for=3)
    assert set(full.steps(WINDOW + 2 + 3 * (COOL_DOWN + 2))) == {2}
    failed = full.records("failed")
    assert 3 <= len(failed) <= 4
    assert {(record["nodes"], record["target"]) for record in failed} == {(2, 4)}
    assert failed[0]["error"].startswith("NodeStartTimeout: ")
    full.cluster.demand = 1.0
    full.steps(2 * COOL_DOWN)
    assert full.records("decided")[-1]["target"] == 2  # the withdrawal


def test_a_refused_request_is_recorded_and_followed_by_a_cool_down() -> None:
    skewed = world(demand=2.0, ceiling=3, scaling={"relax": False, "tau": 0.0})
    assert set(skewed.steps(WINDOW + 2 + COOL_DOWN)) == {2}
    refused = skewed.records("refused")
    assert [(record["nodes"], record["target"]) for record in refused] == [(2, 3), (2, 3)]
    assert refused[0]["error"].startswith("Infeasible: ")


def test_a_request_that_a_full_cluster_refused_is_repeated_after_a_cool_down() -> None:
    full = world(demand=2.0)
    full.cluster.slots = 3
    assert set(full.steps(WINDOW + 2 + COOL_DOWN)) == {2}
    refused = full.records("refused")
    assert [(record["nodes"], record["target"]) for record in refused] == [(2, 4), (2, 4)]
    assert refused[0]["error"].startswith("TooFewSlots: ")
    full.cluster.slots = None
    assert full.steps(COOL_DOWN + 5)[-1] == 4


def test_a_request_during_another_migration_is_recorded_and_followed_by_a_cool_down() -> None:
    class BusyScaler(Scaler):
        def scale(self, *_: Any, **__: Any) -> TaskMigration:
            raise MigrationInProgress

    late = world(demand=2.0)
    late.scaler = BusyScaler(late.cluster, late.monitor, late.journal)
    late.autoscaler = late.create_autoscaler()
    late.steps(WINDOW + COOL_DOWN)
    assert [record["error"].partition(":")[0] for record in late.records("refused")] == ["MigrationInProgress"]


def test_a_policy_that_raises_is_recorded_and_called_again_after_a_cool_down() -> None:
    calls: list[float] = []

    class Broken:
        def decide(self, observation: Observation) -> Decision:
            calls.append(observation.at)
            raise ZeroDivisionError("division by zero")

    broken = world(policy=Broken())
    broken.steps(40)
    failed = broken.records("failed")
    assert [(record["policy"], record["error"]) for record in failed[:1]] == [
        ("Broken", "ZeroDivisionError: division by zero")
    ]
    assert all(later - earlier >= COOL_DOWN for earlier, later in pairwise(calls))
    assert len(failed) == len(calls) == 2


def test_while_the_store_is_unavailable_nothing_changes_and_the_autoscaler_survives() -> None:
    class UnavailableJournal(JobJournal):
        unavailable = True

        def append(self, record: JournalRecord) -> int:
            if self.unavailable:
                raise StoreUnavailable("memory:", "put", "journal", "offline")
            return super().append(record)

    busy = world(demand=2.0)
    journal = UnavailableJournal(busy.store, "job")
    busy.autoscaler = busy.create_autoscaler(journal=journal)
    assert set(busy.steps(30)) == {2}
    journal.unavailable = False
    assert busy.steps(COOL_DOWN)[-1] == 4


def test_after_a_node_is_lost_no_decision_is_made_until_its_recovery_has_left_the_window() -> None:
    hurt = world(demand=2.0)
    hurt.cluster.lost = {"node-2"}
    assert set(hurt.steps(50)) == {2}
    assert hurt.autoscaler.last_decision == Decision(2, "no measurements of node-2 yet")
    hurt.cluster.lost = set()
    assert set(hurt.steps(WINDOW)) == {2}
    assert hurt.steps(3)[-1] == 4


def test_a_stopped_autoscaler_reports_that_it_is_stopped() -> None:
    stopped = world().autoscaler
    stopped.start()
    assert not stopped.is_stopped
    stopped.stop()
    assert stopped.is_stopped


class KeyScaler(Scaler):
    """Answers requests to move keys with these errors, one after the other; then with a migration that is over."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.requests: list[KeyRequest] = []
        self.errors: list[Exception] = []

    def move_keys(self, request: KeyRequest, *, queue: bool = False) -> KeyMigration:  # noqa: ARG002
        self.requests.append(request)
        if self.errors:
            raise self.errors.pop(0)
        migration = KeyMigration(plan_keys(KeyLoads([1], [0], [0], [1.0]), 2, relax=True), [], self._cluster)
        migration.end("done")
        self._current = migration
        return migration


def infeasible(heaviest_hash: int | None) -> KeysInfeasible:
    return KeysInfeasible(
        strategy="knap",
        keys=5,
        nodes=2,
        theta=0.1,
        cap=1.1,
        heaviest_hash=heaviest_hash,
        heaviest_work=1.5,
        smallest_theta=0.4,
    )


def unbalanced(**how: Any) -> tuple[World, KeyScaler]:
    found = world(demand=1.0, policy="imbalance", **how)
    found.cluster.shares = {"node-1": 0.7, "node-2": 0.3}
    scaler = found.scaler = KeyScaler(found.cluster, found.monitor, found.journal)
    found.autoscaler = found.create_autoscaler()
    return found, scaler


def test_a_sustained_imbalance_is_answered_by_moving_keys_once_per_cool_down() -> None:
    job, scaler = unbalanced()
    assert set(job.steps(WINDOW + 3)) == {2}
    assert [(request.theta, request.relax) for request in scaler.requests] == [(0.1, False)]
    [decided] = job.records("decided")
    assert (decided["nodes"], decided["target"]) == (2, 2)
    assert "busier than the mean" in decided["reason"]
    job.steps(COOL_DOWN + WINDOW + 2)
    assert len(scaler.requests) == 2


def test_an_imbalance_is_answered_by_splitting_keys_where_a_partial_stage_splits_none() -> None:
    job, scaler = unbalanced()
    job.cluster.unsplit_stage = "words"
    job.steps(WINDOW + 3)
    assert (job.cluster.split_calls, scaler.requests) == ([("words", "head")], [])
    [decided] = job.records("decided")
    assert (decided["nodes"], decided["target"]) == (2, 2)
    assert "words can split its heaviest keys, which moves no state" in decided["reason"]
    decision = job.autoscaler.last_decision
    assert decision is not None
    job.cluster.unsplit_stage = None
    job.steps(COOL_DOWN + WINDOW + 2)
    assert len(scaler.requests) == 1


def test_a_split_is_only_recommended_where_the_autoscaler_recommends() -> None:
    job, _ = unbalanced(recommend_only=True)
    job.cluster.unsplit_stage = "words"
    job.steps(WINDOW + 3)
    assert job.cluster.split_calls == []
    reason = job.records("recommended")[0]["reason"]
    assert "can split" in reason
    assert reason.endswith("Use job.split('head'), or `elastic split`.")


def test_a_refused_split_is_recorded_and_followed_by_a_cool_down() -> None:
    job, _ = unbalanced()
    job.cluster.unsplit_stage = "gone"
    job.steps(WINDOW + 3)
    [refused] = job.records("refused")
    assert "KeysCannotBeSplit" in refused["error"]
    decision = job.autoscaler.last_decision
    assert decision is not None
    assert "keys should be split" in decision.reason


def test_a_theta_that_no_plan_reaches_is_relaxed() -> None:
    job, scaler = unbalanced()
    scaler.errors = [infeasible(None)]
    job.steps(WINDOW + 3)
    assert [request.relax for request in scaler.requests] == [False, True]
    assert len(job.records("decided")) == 1


def test_a_key_that_is_too_heavy_for_any_node_is_reported_with_what_helps() -> None:
    job, scaler = unbalanced()
    scaler.errors = [infeasible(17)]
    job.steps(WINDOW + 3)
    assert [request.relax for request in scaler.requests] == [False]
    [recommended] = job.records("recommended")
    assert "neither more nodes nor moves help" in recommended["reason"]
    assert "hash 17" in recommended["reason"]
    assert "partial(operator, split='none')" in recommended["reason"]
    decision = job.autoscaler.last_decision
    assert decision is not None
    assert "cooling down" in decision.reason or "hash 17" in decision.reason


def test_a_refused_rebalance_is_recorded_and_followed_by_a_cool_down() -> None:
    job, scaler = unbalanced()
    scaler.errors = [KeysNotMeasured("words")] * 9
    job.steps(WINDOW + COOL_DOWN)
    assert len(scaler.requests) == 1
    [refused] = job.records("refused")
    assert refused["error"].startswith("KeysNotMeasured: ")


def test_an_autoscaler_that_only_recommends_moves_no_key() -> None:
    job, scaler = unbalanced(recommend_only=True)
    job.steps(WINDOW + 3)
    assert scaler.requests == []
    assert len(job.records("recommended")) == 1
