"""Commands to the store: an event follows only what was done, and a lease is closed only behind its commit."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from elastic import retry
from elastic.core import commands, events
from elastic.core.ids import Batch, UnitId
from elastic.driver.store_executor import StoreExecutor
from elastic.errors import StoreUnreachable
from elastic.operators.key_records import are_orders
from elastic.results import ResultLog
from elastic.routing import KeyOrders, KeyTable, PartialGrouping, Routing, TableGrouping
from migration import Assignment
from storage.errors import StoreUnavailable
from storage.state import BatchTime, Collector, InputLog, Manifest, Manifests, SourceBatch
from storage.stores.memory import MemoryStore
from tests.elastic.driver.local_job import until
from tests.elastic.driver.parts import SECRET

UNITS = [UnitId(0, task) for task in range(4)]
TIME = BatchTime(0, 1_000)
ROUND = commands.CommitRound(Batch(0), 0, (), True, TIME, SourceBatch(0), Batch(-1))


class Executor:
    """An executor on a store in memory, and what it posts; `story` also has the commits and the leases."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, retry_seconds: float = 60.0) -> None:
        self.store = MemoryStore()
        self.manifests = Manifests(self.store, SECRET, "job")
        routing = Routing.by_hash(Assignment.even(tasks=4, nodes=2))
        self.manifests.recover(Manifest.first(UNITS, routing.to_json()))
        self.results = ResultLog(self.store, SECRET, "job")
        self.posted: list[tuple[Any, str]] = []
        self.story: list[str] = []
        self.failures: list[BaseException] = []
        self._watch(monkeypatch, self.manifests, "commit")
        self._watch(monkeypatch, self.manifests, "commit_batch")
        self._watch(monkeypatch, self.results, "publish")
        self._watch(monkeypatch, self.manifests.leases, "close")
        self.executor = StoreExecutor(
            self.manifests,
            InputLog(self.store, SECRET, "job"),
            self.results,
            Collector(self.store, SECRET, "job"),
            retry_seconds=retry_seconds,
            retain_result_batches=10,
            post=self._post,
            on_failure=self.failures.append,
            on_published=lambda: self.story.append("on_published"),
            needed_from=lambda: None,
        )

    def wait_for(self, kind: type) -> Any:
        until(lambda: any(isinstance(event, kind) for event, _ in self.posted), kind.__name__)
        return next(event for event, _ in self.posted if isinstance(event, kind))

    def fail_at(self, monkeypatch: pytest.MonkeyPatch, method: str, errors: list[Exception]) -> None:
        """Let the next calls of a method of the store raise these."""
        call: Callable[..., Any] = getattr(self.store, method)

        def failing(*arguments: Any, **options: Any) -> Any:
            if errors:
                raise errors.pop(0)
            return call(*arguments, **options)

        monkeypatch.setattr(self.store, method, failing)

    def _post(self, event: Any, cause: str) -> None:
        self.story.append(type(event).__name__)
        self.posted.append((event, cause))

    def _watch(self, monkeypatch: pytest.MonkeyPatch, part: Any, method: str) -> None:
        call: Callable[..., Any] = getattr(part, method)

        def watched(*arguments: Any, **options: Any) -> Any:
            result = call(*arguments, **options)
            self.story.append(method)
            return result

        monkeypatch.setattr(part, method, watched)


def away() -> StoreUnavailable:
    return StoreUnavailable("memory:", "put", "a key", "it does not answer")


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Executor]:
    monkeypatch.setattr(retry, "_FIRST_PAUSE_SECONDS", 0.001)
    executor = Executor(monkeypatch)
    yield executor
    assert executor.executor.close(10)


def test_a_round_is_posted_as_committed_when_it_is(executor: Executor) -> None:
    executor.executor.commit_round(ROUND, "e5")
    committed = executor.wait_for(events.RoundCommitted)
    assert executor.story == ["commit_batch", "RoundCommitted"]
    assert executor.posted[0][1] == "e5"
    assert (committed.batch, committed.round, committed.complete, committed.time) == (0, 0, True, TIME)
    found = executor.manifests.recover()
    assert (found.last_batch, found.latest_time, found.source) == (0, TIME, SourceBatch(0))
    assert committed.manifest.last_batch == 0


def test_a_commit_is_retried_while_the_store_is_unavailable(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor.fail_at(monkeypatch, "put_if_absent", [away(), away(), away()])
    executor.executor.commit_round(ROUND, "e5")
    executor.wait_for(events.RoundCommitted)
    assert executor.failures == []
    assert executor.manifests.recover().last_batch == 0


def test_a_round_that_cannot_be_committed_fails_the_job_and_nothing_is_posted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_PAUSE_SECONDS", 0.001)
    executor = Executor(monkeypatch, retry_seconds=0.01)
    executor.fail_at(monkeypatch, "put_if_absent", [away()] * 10_000)
    executor.executor.commit_round(ROUND, "e5")
    until(lambda: executor.failures)
    assert isinstance(executor.failures[0], StoreUnreachable)
    assert executor.posted == []
    assert executor.executor.close(10)


def test_an_epoch_and_an_assignment_are_committed_in_a_new_epoch(executor: Executor) -> None:
    executor.executor.commit_epoch(commands.CommitEpoch("node-1 joined"), "e1")
    assert executor.wait_for(events.EpochCommitted).manifest.epoch == 1
    target = Assignment.even(tasks=4, nodes=4)
    executor.executor.commit_assignment(commands.CommitAssignment(target), "e2")
    committed = executor.wait_for(events.AssignmentCommitted)
    assert committed.assignment is target
    assert (committed.manifest.epoch, committed.routing.epoch) == (2, 2)
    assert committed.routing.assignment.owners == target.owners
    assert [cause for _, cause in executor.posted] == ["e1", "e2"]


def test_results_are_posted_as_published_when_they_are(executor: Executor) -> None:
    executor.executor.publish_results(commands.PublishResults(Batch(0), (), 1_000), "e5")
    executor.wait_for(events.ResultsPublished)
    assert executor.story == ["publish", "on_published", "ResultsPublished"]
    assert executor.results.poll() == range(1)


def test_results_that_cannot_be_published_fail_the_job_and_are_not_posted(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor.fail_at(monkeypatch, "put_if_absent", [PermissionError("read-only")])
    executor.executor.publish_results(commands.PublishResults(Batch(0), (), 1_000), "e5")
    until(lambda: executor.failures)
    assert isinstance(executor.failures[0], PermissionError)
    assert executor.posted == []
    assert "on_published" not in executor.story


def open_lease(executor: Executor) -> str:
    executor.executor.open_snapshot_lease(commands.OpenSnapshotLease(), "e1")
    lease: str = executor.wait_for(events.SnapshotLeaseOpened).lease
    executor.story.clear()
    return lease


def open_leases(executor: Executor) -> list[str]:
    return [entry.key for entry in executor.store.list("operators/job/leases/")]


def test_the_lease_of_a_snapshot_is_closed_behind_its_commit(executor: Executor) -> None:
    lease = open_lease(executor)
    assert len(open_leases(executor)) == 1
    executor.executor.commit_states(commands.CommitStates(lease, (), {}, Batch(-1)), "e2")
    assert executor.wait_for(events.StatesCommitted).lease == lease
    until(lambda: "close" in executor.story)
    assert executor.story == ["commit", "StatesCommitted", "close"]
    assert open_leases(executor) == []


def test_the_lease_of_a_snapshot_is_closed_also_when_its_commit_fails(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = open_lease(executor)
    executor.fail_at(monkeypatch, "put_if_absent", [away()])
    executor.executor.commit_states(commands.CommitStates(lease, (), {}, Batch(-1)), "e2")
    executor.wait_for(events.SnapshotFailed)
    until(lambda: "close" in executor.story)
    assert (executor.story[0], executor.story[-1]) == ("SnapshotFailed", "close")
    assert open_leases(executor) == []
    assert executor.failures == []


def test_a_snapshot_lease_that_cannot_be_opened_is_tried_again_with_the_next_snapshot(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor.manifests.leases, "open", lambda _: (_ for _ in ()).throw(away()))
    executor.executor.open_snapshot_lease(commands.OpenSnapshotLease(), "e1")
    assert "it does not answer" in executor.wait_for(events.SnapshotFailed).reason
    assert executor.failures == []


def test_a_migration_lease_is_opened_when_the_store_is_back_and_closed_when_it_is_not_needed(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, failing = executor.manifests.leases.open, [away(), away()]

    def open_when_back(owner: str) -> Any:
        if failing:
            raise failing.pop()
        return opened(owner)

    monkeypatch.setattr(executor.manifests.leases, "open", open_when_back)
    executor.executor.open_migration_lease(commands.OpenMigrationLease(), "e1")
    lease = executor.wait_for(events.MigrationLeaseOpened).lease
    assert len(open_leases(executor)) == 1
    executor.executor.close_migration_lease(commands.CloseMigrationLease(lease), "e2")
    until(lambda: open_leases(executor) == [])


def test_a_close_ends_retries_and_waits_for_what_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Executor(monkeypatch)
    waiting = threading.Event()
    executor.fail_at(monkeypatch, "put_if_absent", [away()] * 100)
    executor.executor.commit_round(ROUND, "e5")
    waiting.wait(0.05)
    assert executor.executor.close(10)
    assert isinstance(executor.failures[0], StoreUnavailable)
    assert executor.posted == []


def regrouping_to(table: TableGrouping, orders: Mapping[int, KeyOrders] | None = None) -> commands.Regrouping:
    return commands.Regrouping((table,), orders or {})


def test_orders_are_logged_once_and_committed_with_their_round(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor.fail_at(monkeypatch, "put", [away()])
    orders = {2: KeyOrders(np.array([17, 5]), np.array([3, 4]))}
    round_ = replace(ROUND, round=1, source=None, complete=False, regrouping=regrouping_to(TableGrouping(), orders))
    executor.executor.commit_round(replace(ROUND, complete=False), "e1")
    executor.executor.commit_round(round_, "e2")
    until(lambda: len(executor.posted) == 2, "both answers")
    _, (committed, _) = executor.posted
    [ref] = committed.logs
    assert committed.manifest.log == (ref,)
    assert ref.size > 0
    [(unit, records)] = InputLog(executor.store, SECRET, "job").read(ref, range(4)).items()
    assert unit == 2
    assert are_orders([records])
    assert records.to_pydict() == {"hash": [17, 5], "target": [3, 4]}


def test_a_round_and_new_groupings_are_committed_in_one_manifest(executor: Executor) -> None:
    table = TableGrouping(KeyTable.from_entries({17: 3}))
    executor.executor.commit_round(replace(ROUND, regrouping=regrouping_to(table)), "e1")
    committed = executor.wait_for(events.RoundCommitted)
    assert committed.routing.groupings.by_stage == (table,)
    assert committed.routing.epoch == committed.routing.groupings.epoch == committed.manifest.epoch == 1
    latest = executor.manifests.latest()
    assert latest is not None
    assert latest.number == 2  # the first is that of the start
    assert (latest.last_batch, latest.epoch) == (0, 1)
    assert Routing.from_json(latest.assignment) == committed.routing


def test_a_round_with_groupings_that_is_committed_again_changes_nothing(executor: Executor) -> None:
    for _ in range(2):
        executor.executor.commit_round(replace(ROUND, regrouping=regrouping_to(TableGrouping())), "e1")
    until(lambda: len(executor.posted) == 2, "both answers")
    first, second = (event for event, _ in executor.posted)
    assert (first.routing, first.manifest.number) == (second.routing, second.manifest.number)


def test_groupings_outlive_a_change_of_the_assignment(executor: Executor) -> None:
    executor.executor.commit_round(replace(ROUND, regrouping=regrouping_to(TableGrouping())), "e1")
    executor.executor.commit_assignment(commands.CommitAssignment(Assignment.even(tasks=4, nodes=3)), "e2")
    committed = executor.wait_for(events.AssignmentCommitted)
    assert committed.routing.groupings.by_stage == (TableGrouping(),)
    assert (committed.routing.epoch, committed.routing.groupings.epoch) == (2, 1)
    assert len(committed.routing.assignment.nodes) == 3


def test_a_change_of_split_keys_and_one_of_tables_do_not_undo_each_other(executor: Executor) -> None:
    table = TableGrouping(KeyTable.from_entries({17: 3}))
    by_stage = (TableGrouping(), PartialGrouping("none", "none"))
    executor.manifests.commit(  # as a job with such stages starts
        lambda current: replace(
            current, epoch=1, assignment=Routing.from_json(current.assignment).with_groupings(by_stage, 1).to_json()
        )
    )
    executor.executor.commit_split(commands.CommitSplit(1, "head"), "e2")
    committed = executor.wait_for(events.SplitCommitted)
    assert committed.routing.groupings.by_stage == (TableGrouping(), PartialGrouping("head", "none"))
    assert (committed.routing.epoch, committed.routing.groupings.epoch, committed.manifest.epoch) == (2, 1, 2)
    # The plan of these moves does not know of the change.
    executor.executor.commit_round(replace(ROUND, regrouping=commands.Regrouping((table, by_stage[1]), {})), "e3")
    executor.wait_for(events.RoundCommitted)
    latest = executor.manifests.latest()
    assert latest is not None
    assert Routing.from_json(latest.assignment).groupings.by_stage == (table, PartialGrouping("head", "none"))
