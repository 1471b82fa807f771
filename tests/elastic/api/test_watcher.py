"""The watcher: snapshots, response times, migrations."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.api.rendering import render_status
from elastic.api.responses import ApplyLagTracker
from elastic.api.watcher import Watcher
from migration import Workload
from tests.elastic.api.paper_job import PaperJob


@given(st.lists(st.tuples(st.floats(0.01, 5), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_the_lag_is_the_longest_time_from_commit_to_publication(steps: list[tuple[float, int, int]]) -> None:
    """Compared with brute force over all commits and publications; every publication is observed once."""
    observed: list[float] = []
    lag = ApplyLagTracker(observed.append)
    at, last, applied = 0.0, 4, 4
    lag.update(at, last, applied)
    committed: dict[int, float] = {}
    done: dict[int, float] = {}
    for seconds, more, fewer in steps:
        at += seconds
        committed |= dict.fromkeys(range(last + 1, last + more + 1), at)
        last += more
        now = min(last, applied + fewer)
        done |= dict.fromkeys(range(applied + 1, now + 1), at)
        applied = now
        lag.update(at, last, applied)
    spans = [done.get(batch, at) - began for batch, began in committed.items()]
    assert lag.take_longest(at) == max(spans, default=None)
    assert sorted(observed) == sorted(done[batch] - committed[batch] for batch in done)
    waiting = [at - began for batch, began in committed.items() if batch not in done]
    assert lag.take_longest(at) == max(waiting, default=None)


def test_the_lag_of_batches_before_the_first_poll_is_unknown() -> None:
    observed: list[float] = []
    lag = ApplyLagTracker(observed.append)
    lag.update(0.0, 10, 7)
    lag.update(5.0, 10, 10)
    assert lag.take_longest(5.0) is None
    assert observed == []


def test_a_snapshot_has_the_owner_of_every_task_and_the_work_of_every_node() -> None:
    job = PaperJob(tasks=16, nodes=4)
    snapshot = Watcher(job).poll()
    assert snapshot.owners == list(job.assignment().owners)
    assert sum(node.tasks for node in snapshot.nodes) == 16
    assert sum(node.state_bytes for node in snapshot.nodes) == job.workload().total_state
    assert [node.name for node in snapshot.nodes] == ["node-1", "node-2", "node-3", "node-4"]
    work = sum(node.work for node in snapshot.nodes)
    assert abs(snapshot.cap - 1.2 * work / 4) < 1e-9
    assert snapshot.migration is None


def test_nodes_are_sorted_by_name() -> None:
    job = PaperJob(tasks=24, nodes=11)
    names = [f"node-{number}" for number in range(1, 12)]
    assert [node.name for node in Watcher(job).poll().nodes] == names
    assert [node.name for node in render_status(job.status()).nodes] == names


def test_snapshots_are_numbered_and_each_has_a_response_time() -> None:
    watcher = Watcher(PaperJob())
    made = [watcher.poll() for _ in range(3)]
    assert [one.id for one in made] == [1, 2, 3]
    assert watcher.snapshot() is made[-1]
    assert [one.id for one in watcher.history.after(1)] == [2, 3]
    assert made[0].response.trigger_ms == 120
    assert (
        made[1].response.trigger_ms is None or made[1].last_batch > made[0].last_batch
    )  # each trigger is reported once


def test_a_lost_node_leaves_a_mark() -> None:
    job = PaperJob()
    watcher = Watcher(job)
    assert watcher.poll().marks == []
    job.losses = 2
    assert [mark.text for mark in watcher.poll().marks] == ["2 nodes were lost"]
    assert len(watcher.poll().marks) == 1


def test_a_migration_that_was_not_requested_through_the_api_is_tracked() -> None:
    job = PaperJob()
    watcher = Watcher(job)
    for nodes in (5, 6):
        assert job.scale(nodes, relax=True).wait(10)
        watcher.poll()
    assert [one.number for one in watcher.list_migrations()] == [2, 1]
    assert watcher.tracker.count_outcomes() == {"done": 2}


def test_a_snapshot_after_a_migration_has_the_final_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the migration ends while the snapshot is taken."""
    job = PaperJob()
    job.cluster.go.clear()
    migration = job.scale(6, relax=True)
    measured = job.workload()

    def measure_until_the_end() -> Workload:
        job.cluster.go.set()
        assert migration.wait(10)
        return measured

    monkeypatch.setattr(job, "workload", measure_until_the_end)
    watcher = Watcher(job)
    made = [watcher.poll(), watcher.poll()]
    over = [one for one in made if one.migration is not None and one.migration.is_over]
    assert over[-1] is made[-1]
    for one in over:
        assert one.owners == list(migration.plan.target.owners)


def test_a_watcher_polls_until_it_is_stopped() -> None:
    watcher = Watcher(PaperJob())
    watcher.start()
    ends = time.monotonic() + 10
    while len(watcher.history.after(0)) < 2 and time.monotonic() < ends:
        time.sleep(0.02)
    watcher.stop()
    count = len(watcher.history.after(0))
    assert count >= 2
    assert not watcher.is_stale
    time.sleep(0.6)
    assert len(watcher.history.after(0)) == count
