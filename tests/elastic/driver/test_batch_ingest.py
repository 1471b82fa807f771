"""Ingest without Spark: replays, checkpoints that are behind, watermarks and clocks across restarts, ticks."""

import dataclasses
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
import pytest

from elastic import threads
from elastic.core.ids import Batch
from elastic.core.messages import Heartbeat
from elastic.core.nodes import NodeView
from elastic.core.steps import Position
from elastic.driver.views import Views
from elastic.errors import CheckpointMismatch, JobStopped, NullKey
from elastic.ingest.batch_ingest import BatchIngest, BatchNotIngested, IngestPlan
from elastic.ingest.batch_spec import BatchSpec
from elastic.ingest.partition_sender import PartitionStatus
from elastic.job.ticker import Ticker
from elastic.operators import CountByKey
from elastic.operators.graph import InputSpec
from elastic.operators.stages import build_runners, build_stages
from elastic.routing import TableGrouping
from elastic.wire.failures import failure_to_json
from storage.state import BatchTime, LogRef, SourceBatch
from tests.elastic.driver.parts import make_context, make_coordinator

NOW_MS = 1_000_000


class CommittingDriver:
    """The part of the driver that ingest uses, as one that commits at once and publishes nothing."""

    def __init__(self) -> None:
        self.views = Views("job", make_coordinator().view())
        self.times: list[BatchTime] = []
        self.regroup_at: int | None = None  # the batch before whose commit the groupings change
        self.claimed: list[str] = []

    @property
    def view(self) -> Any:
        return self.views.latest

    def claim(self, query: str) -> None:
        self.claimed.append(query)

    def change(self, **changes: Any) -> None:
        self.views.publish(dataclasses.replace(self.view, **changes))

    def commit_batch(
        self,
        batch: Batch,
        logs: tuple[LogRef, ...],
        time: BatchTime,
        source: SourceBatch | None,
        groupings_epoch: int,
        seconds: Mapping[str, float],  # noqa: ARG002 - of the protocol
        check: Callable[[], None],
    ) -> bool:
        assert (batch, logs) == (self.view.newest_batch + 1, ())
        check()
        if batch == self.regroup_at:
            self.regroup_at = None
            routing = self.view.routing.with_groupings([TableGrouping()], 7)
            self.change(routing=routing, route=routing)
        if groupings_epoch != self.view.routing.groupings.epoch:
            return False
        manifest = self.view.manifest.with_batch(batch, 0, True, logs, time, source)
        self.change(manifest=manifest, newest=Position(batch, 0))
        self.times.append(time)
        return True


class ListSource:
    """Batches are lists of the latest event times of their partitions."""

    def __init__(self, **digests: str | None) -> None:
        self.digests = digests
        self.sent: list[BatchSpec] = []

    def query_id(self, _rows: Any) -> str:
        return "query"

    def read_digest(self, _query: str, batch: int) -> Future[str | None]:
        digest: Future[str | None] = Future()
        digest.set_result(self.digests.get(f"batch{batch}", f"digest {batch}"))
        return digest

    def send(self, rows: Any, spec: BatchSpec) -> list[PartitionStatus]:
        self.sent.append(spec)
        return [PartitionStatus(rows=1, seen=((0, latest_ms),)) for latest_ms in rows]


def ingest(driver: Any, source: ListSource | None = None, **settings: Any) -> BatchIngest:
    spec = InputSpec("input", pa.schema([("key", pa.int64()), ("ts", pa.int64())]), (), "ts", 10)
    plan = IngestPlan.of([spec], build_runners(build_stages(CountByKey(), "key"), [spec]))
    return BatchIngest(make_context(**settings), driver, source or ListSource(), plan)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now = [NOW_MS]
    monkeypatch.setattr(threads, "time_ns", lambda: now[0] * 1_000_000)
    return now


@pytest.fixture
def driver() -> CommittingDriver:
    return CommittingDriver()


def test_the_newest_batch_sent_again_changes_nothing(driver: CommittingDriver) -> None:
    source = ListSource()
    for _ in range(2):
        ingest(driver, source).ingest([1_000], 0)
    assert driver.view.newest_batch == 0
    assert len(source.sent) == 1


def test_a_batch_is_sent_again_if_the_groupings_change_before_its_commit(driver: CommittingDriver) -> None:
    source, driver.regroup_at = ListSource(), 1
    job = ingest(driver, source)
    for batch in range(3):
        job.ingest([1_000], batch)
    assert [(spec.batch, spec.routing.groupings.epoch) for spec in source.sent] == [(0, 0), (1, 0), (1, 7), (2, 7)]
    assert driver.view.newest_batch == 2
    assert job.rows == 3


def test_a_tick_that_meets_a_change_of_groupings_commits_nothing(driver: CommittingDriver) -> None:
    driver.regroup_at = 0
    assert not ingest(driver).tick(NOW_MS)
    assert ingest(driver).tick(NOW_MS)
    assert driver.view.newest_batch == 0


def test_the_newest_batch_with_other_offsets_is_refused(driver: CommittingDriver) -> None:
    ingest(driver).ingest([1_000], 0)
    again = ingest(driver, ListSource(batch0="other offsets"))
    with pytest.raises(BatchNotIngested):
        again.ingest([1_000], 0)
    assert isinstance(again.failure, CheckpointMismatch)
    assert (driver.view.newest_batch, again.failure.next_batch, again.failure.last_batch) == (0, 0, 0)


def test_offsets_that_the_source_does_not_reveal_are_not_compared(driver: CommittingDriver) -> None:
    ingest(driver, ListSource(batch0=None)).ingest([], 0)
    ingest(driver).ingest([], 0)
    assert driver.view.newest_batch == 0


@pytest.mark.parametrize("batch", [3, 6])
def test_an_older_batch_or_a_gap_is_refused_and_nothing_is_committed(driver: CommittingDriver, batch: int) -> None:
    first = ingest(driver)
    for number in range(5):
        first.ingest([], number)
    again = ingest(driver)
    with pytest.raises(BatchNotIngested, match="CheckpointMismatch"):
        again.ingest([], batch)
    assert isinstance(again.failure, CheckpointMismatch)
    assert (again.failure.next_batch, again.failure.last_batch) == (batch, 4)
    assert driver.view.newest_batch == 4


def test_a_job_is_bound_to_its_query_once(driver: CommittingDriver) -> None:
    first = ingest(driver)
    first.ingest([], 0)
    first.ingest([], 1)
    assert driver.claimed == ["query"]


def test_a_restarted_job_continues_with_the_watermark_it_had(driver: CommittingDriver) -> None:
    ingest(driver).ingest([5_000], 0)
    ingest(driver).ingest([100], 1)  # another run of the job: late rows do not bring the watermark back
    ingest(driver).ingest([], 2)
    assert [(time.watermark_ms, time.next_watermark_ms) for time in driver.times] == [
        (None, 4_990),
        (4_990, 4_990),
        (4_990, 4_990),
    ]


def test_the_watermark_is_that_of_the_latest_partition(driver: CommittingDriver) -> None:
    ingest(driver).ingest([1_000, 7_000, 3_000], 0)
    assert driver.times[0].next_watermark_ms == 6_990


def test_event_times_before_1970_are_what_they_are(driver: CommittingDriver) -> None:
    ingest(driver).ingest([-31_536_000_000], 0)
    assert driver.times[0].next_watermark_ms == -31_536_000_010


def test_processing_time_does_not_go_back_with_the_clock(driver: CommittingDriver, clock: list[int]) -> None:
    ingest(driver).ingest([], 0)
    clock[0] -= 60_000
    ingest(driver).ingest([], 1)
    clock[0] += 120_000
    ingest(driver).ingest([], 2)
    assert [time.timestamp_ms for time in driver.times] == [NOW_MS, NOW_MS, NOW_MS + 60_000]


def test_rows_are_sent_as_the_batch_of_the_job_to_where_the_units_are_now(driver: CommittingDriver) -> None:
    source = ListSource()
    found = ingest(driver, source)
    found.ingest([1], 0)
    assert found.tick(NOW_MS)
    found.ingest([1], 1)
    assert [spec.batch for spec in source.sent] == [0, 2]
    assert source.sent[-1].routing is driver.view.route
    assert found.rows == 2


def test_a_source_that_is_too_fast_is_throttled_until_a_batch_is_published(driver: CommittingDriver) -> None:
    source = ListSource()
    found = ingest(driver, source, max_pending_batches=2)
    driver.change(pending_batches=2)
    waiting = threading.Thread(target=found.ingest, args=([], 0), daemon=True)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    assert source.sent == []
    driver.change(pending_batches=1)
    waiting.join(10)
    assert driver.view.newest_batch == 0


def test_a_batch_waits_until_the_rounds_of_the_one_before_are_committed(driver: CommittingDriver) -> None:
    source = ListSource()
    driver.change(is_complete=False)
    waiting = threading.Thread(target=ingest(driver, source).ingest, args=([], 0), daemon=True)
    waiting.start()
    waiting.join(0.2)
    assert source.sent  # its rows are sent meanwhile
    assert driver.times == []
    driver.change(is_complete=True)
    waiting.join(10)
    assert driver.view.newest_batch == 0


@pytest.mark.parametrize("waits_for", [{"pending_batches": 9}, {"is_complete": False}])
def test_a_stop_ends_a_batch_that_waits(driver: CommittingDriver, waits_for: dict[str, Any]) -> None:
    found, refused = ingest(driver), threading.Event()
    driver.change(**waits_for)

    def wait() -> None:
        with pytest.raises(BatchNotIngested, match="JobStopped"):
            found.ingest([], 0)
        refused.set()

    threading.Thread(target=wait, daemon=True).start()
    assert not refused.wait(0.05)
    found.stop(abandon=False)
    assert refused.wait(10)
    assert isinstance(found.failure, JobStopped)
    assert driver.times == []
    with pytest.raises(JobStopped):
        found.check()


def test_a_stop_ends_a_batch_that_waits_while_the_stream_is_suspended(driver: CommittingDriver) -> None:
    found = ingest(driver)
    threading.Timer(0.05, lambda: found.stop(abandon=False)).start()
    with found.suspended(), pytest.raises(BatchNotIngested, match="JobStopped"):
        found.ingest([], 0)


def test_a_stop_that_abandons_does_not_wait_for_the_commit_in_flight(driver: CommittingDriver) -> None:
    found = ingest(driver)
    found._abandons_batches = True  # as a stop sets it while the commit is awaited
    with pytest.raises(BatchNotIngested, match="batch 0 was not committed"):
        found.ingest([], 0)


def test_rows_that_a_sender_refuses_fail_the_batch_with_their_error(driver: CommittingDriver) -> None:
    class Failing(ListSource):
        def send(self, _rows: Any, _spec: BatchSpec) -> list[PartitionStatus]:
            return [PartitionStatus(rows=5), PartitionStatus(failure=failure_to_json(NullKey("key", 2, 0)))]

    found = ingest(driver, Failing())
    with pytest.raises(BatchNotIngested):
        found.ingest([], 0)
    assert isinstance(found.failure, NullKey)
    assert (found.failure.column, found.failure.rows) == ("key", 2)
    assert (driver.times, found.rows) == ([], 0)


def test_a_tick_is_an_empty_batch_that_the_source_does_not_count(driver: CommittingDriver) -> None:
    found = ingest(driver)
    found.ingest([5_000], 0)
    assert found.tick(NOW_MS)
    found.ingest([6_000], 1)
    assert (driver.view.newest_batch, driver.view.source.batch) == (2, 1)
    assert [time.watermark_ms for time in driver.times] == [None, 4_990, 4_990]


def test_there_is_no_tick_before_its_time_nor_while_a_batch_is_ingested(driver: CommittingDriver) -> None:
    found = ingest(driver)
    assert not found.tick(NOW_MS + 1)
    with found.suspended():
        assert not found.tick(NOW_MS)
    assert driver.view.newest_batch == -1
    found.stop(abandon=False)
    with pytest.raises(JobStopped):
        found.tick(NOW_MS)


def node_view(number: int, done_batch: int, next_timer_ms: int | None) -> NodeView:
    heartbeat = Heartbeat(f"node-{number}", "x", done_batch=Batch(done_batch), next_timer_ms=next_timer_ms)
    return NodeView(f"node-{number}", "x", "", 0, True, heartbeat)


@pytest.mark.parametrize(
    ("due_ms", "pending", "ticks"), [(NOW_MS, 0, 1), (NOW_MS, 1, 0), (NOW_MS + 1, 0, 0), (None, 0, 0)]
)
def test_the_driver_ticks_when_a_timer_is_due_on_an_idle_stream(
    driver: CommittingDriver, due_ms: int | None, pending: int, ticks: int
) -> None:
    driver.change(nodes=(node_view(1, -1, due_ms),), pending_batches=pending)
    committing: Any = driver
    Ticker(committing, ingest(driver)).poll()
    assert len(driver.times) == ticks


def test_a_timer_is_used_only_when_its_node_has_applied_the_newest_batch(driver: CommittingDriver) -> None:
    heartbeats: list[tuple[int, int | None]] = [(4, 100), (5, 300), (5, 200), (5, None), (-1, None)]
    nodes = (*(node_view(number, *known) for number, known in enumerate(heartbeats)), NodeView("n", "x", "", 0, False))
    driver.change(nodes=nodes, newest=Position(Batch(5), 0))  # the first timer may have fired in batch 5
    assert driver.view.next_timer_ms() == 200
    driver.change(newest=Position(Batch(6), 0))
    assert driver.view.next_timer_ms() is None
