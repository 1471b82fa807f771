"""What the page is told: snapshots, response times, migrations."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.api import rendering
from elastic.api.responses import ApplyLag
from elastic.api.watcher import Watcher
from migration import Workload
from tests.elastic.api.paper_job import PaperJob


@given(st.lists(st.tuples(st.floats(0.01, 5), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_the_lag_is_the_longest_time_from_commit_to_results(steps: list[tuple[float, int, int]]) -> None:
    """Against brute force: all commits and results are kept, and looked through at the end."""
    lag = ApplyLag()
    at, last, applied = 0.0, 4, 4
    lag.look(at, last, applied)
    committed: dict[int, float] = {}
    done: dict[int, float] = {}
    for seconds, more, fewer in steps:
        at += seconds
        committed |= dict.fromkeys(range(last + 1, last + more + 1), at)
        last += more
        now = min(last, applied + fewer)
        done |= dict.fromkeys(range(applied + 1, now + 1), at)
        applied = now
        lag.look(at, last, applied)
    spans = [done.get(batch, at) - began for batch, began in committed.items()]
    assert lag.take(at) == max(spans, default=None)
    waiting = [at - began for batch, began in committed.items() if batch not in done]
    assert lag.take(at) == max(waiting, default=None)


def test_of_batches_before_the_first_look_nothing_is_said() -> None:
    lag = ApplyLag()
    lag.look(0.0, 10, 7)
    lag.look(5.0, 10, 10)
    assert lag.take(5.0) is None


def test_a_snapshot_says_of_every_task_where_it_is_and_of_every_node_what_it_carries() -> None:
    job = PaperJob(tasks=16, nodes=4)
    snapshot = Watcher(job).look()
    assert snapshot.owners == list(job.assignment().owners)
    assert sum(node.tasks for node in snapshot.nodes) == 16
    assert sum(node.state_bytes for node in snapshot.nodes) == job.workload().total_state
    assert [node.name for node in snapshot.nodes] == ["node-1", "node-2", "node-3", "node-4"]
    work = sum(node.work for node in snapshot.nodes)
    assert abs(snapshot.cap - 1.2 * work / 4) < 1e-9
    assert snapshot.migration is None


def test_nodes_are_told_in_the_order_of_their_names() -> None:
    job = PaperJob(tasks=24, nodes=11)
    names = [f"node-{number}" for number in range(1, 12)]
    assert [node.name for node in Watcher(job).look().nodes] == names
    assert [node.name for node in rendering.status(job.status()).nodes] == names


def test_snapshots_are_numbered_and_each_has_a_response_time() -> None:
    watcher = Watcher(PaperJob())
    made = [watcher.look() for _ in range(3)]
    assert [one.id for one in made] == [1, 2, 3]
    assert watcher.snapshot() is made[-1]
    assert [one.id for one in watcher.history.after(1)] == [2, 3]
    assert made[0].response.trigger_ms == 120
    assert made[1].response.trigger_ms is None or made[1].last_batch > made[0].last_batch  # no news, no figure


def test_a_lost_node_leaves_a_mark() -> None:
    job = PaperJob()
    watcher = Watcher(job)
    assert watcher.look().marks == []
    job.losses = 2
    assert [mark.text for mark in watcher.look().marks] == ["2 nodes were lost"]
    assert len(watcher.look().marks) == 1


def test_a_migration_is_seen_whoever_asked_for_it() -> None:
    job = PaperJob()
    watcher = Watcher(job)
    for nodes in (5, 6):
        assert job.scale(nodes, relax=True).wait(10)
        watcher.look()
    assert [one.number for one in watcher.migrations()] == [2, 1]
    assert watcher.seen.outcomes() == {"done": 2}


def test_when_a_migration_is_over_all_tasks_are_shown_where_it_left_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it ends while the snapshot is made."""
    job = PaperJob()
    job.cluster.go.clear()
    migration = job.scale(6, relax=True)
    measured = job.workload()

    def measure_until_it_is_over() -> Workload:
        job.cluster.go.set()
        assert migration.wait(10)
        return measured

    monkeypatch.setattr(job, "workload", measure_until_it_is_over)
    watcher = Watcher(job)
    made = [watcher.look(), watcher.look()]
    over = [one for one in made if one.migration is not None and one.migration.is_over]
    assert over[-1] is made[-1]
    for one in over:
        assert one.owners == list(migration.plan.target.owners)


def test_a_watcher_looks_by_itself_until_it_is_stopped() -> None:
    watcher = Watcher(PaperJob())
    watcher.start()
    ends = time.monotonic() + 10
    while len(watcher.history.after(0)) < 2 and time.monotonic() < ends:
        time.sleep(0.02)
    watcher.stop()
    told = len(watcher.history.after(0))
    assert told >= 2
    assert not watcher.is_stale
    time.sleep(0.6)
    assert len(watcher.history.after(0)) == told
