"""Ingest without Spark: replays, checkpoints that are behind, watermarks and clocks across restarts, ticks."""

import secrets
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest

from elastic.errors import CheckpointMismatch
from elastic.runtime.access import StoreAccess
from elastic.runtime.controller.nodes import Nodes, _Known
from elastic.runtime.intake.batches import BatchNotTaken, Intake
from elastic.runtime.ticks import Ticker
from elastic.settings import Settings
from storage.state import BatchTime, LogRef, SourceBatch

NOW_MS = 1_000_000


@dataclass
class Committed:
    """The part of the controller that ingest uses, as one that commits at once."""

    newest_batch: int = -1
    source: SourceBatch = field(default_factory=lambda: SourceBatch(-1))
    latest_time: BatchTime | None = None
    is_idle: bool = True
    times: list[BatchTime] = field(default_factory=list)

    def check_ingest(self) -> None:
        """Nothing has failed or stopped."""

    def wait_for_room(self) -> None:
        """There is room."""

    def accept(self, batch: int, logs: tuple[LogRef, ...], time: BatchTime, source: SourceBatch | None) -> None:
        assert (batch, logs) == (self.newest_batch + 1, ())
        self.newest_batch, self.latest_time = batch, time
        self.source = source or self.source
        self.times.append(time)


class Offsets:
    def __init__(self, **digests: str) -> None:
        self.digests = digests

    def read(self, _query: str, batch: int) -> Future[str | None]:
        digest: Future[str | None] = Future()
        digest.set_result(self.digests.get(f"batch{batch}", f"digest {batch}"))
        return digest


class LocalIngest(Intake):
    """Takes frames that are lists of the latest event times of their partitions."""

    def _claim(self, _frame: Any) -> str:
        return "query"

    def _send(self, frame: Any, _batch: int) -> list[dict[str, Any]]:
        return [{"logs": [], "rows": 1, "latest_ms": latest_ms} for latest_ms in frame]


def ingest(controller: Committed, offsets: Offsets | None = None, **changes: Any) -> Any:
    parts: dict[str, Any] = {"event_time": "ts", "watermark_delay_ms": 10, **changes}
    made: Any = (controller, StoreAccess("memory:"), Settings(), ("key",), None, "token", offsets or Offsets())
    return LocalIngest("counts", *made, **parts)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now = [NOW_MS]
    monkeypatch.setattr(time, "time_ns", lambda: now[0] * 1_000_000)
    return now


def test_the_newest_batch_sent_again_changes_nothing() -> None:
    controller = Committed()
    ingest(controller).take([1_000], 0)
    ingest(controller).take([1_000], 0)
    assert controller.newest_batch == 0


def test_the_newest_batch_with_other_offsets_is_refused() -> None:
    controller = Committed()
    ingest(controller).take([1_000], 0)
    taken = ingest(controller, Offsets(batch0="other offsets"))
    with pytest.raises(BatchNotTaken):
        taken.take([1_000], 0)
    assert isinstance(taken.failure, CheckpointMismatch)
    assert (controller.newest_batch, taken.failure.next_batch, taken.failure.last_batch) == (0, 0, 0)


def test_offsets_that_spark_does_not_reveal_are_not_compared() -> None:
    controller = Committed(0, SourceBatch(0, None), BatchTime(0, 0))
    ingest(controller).take([], 0)
    assert controller.newest_batch == 0


@pytest.mark.parametrize("batch", [3, 6])
def test_a_batch_that_does_not_follow_is_refused(batch: int) -> None:
    taken = ingest(Committed(7, SourceBatch(4, "digest 4")))
    with pytest.raises(BatchNotTaken, match="CheckpointMismatch"):
        taken.take([], batch)


def test_a_restarted_job_continues_with_the_watermark_it_had() -> None:
    controller = Committed()
    ingest(controller).take([5_000], 0)
    ingest(controller).take([100], 1)  # another run of the job: late rows do not bring the watermark back
    assert [(time.watermark_ms, time.next_watermark_ms) for time in controller.times] == [(None, 4_990), (4_990, 4_990)]


def test_event_times_before_1970_are_what_they_are() -> None:
    controller = Committed()
    ingest(controller).take([-31_536_000_000], 0)
    assert controller.times[0].next_watermark_ms == -31_536_000_010


def test_processing_time_does_not_go_back_with_the_clock(clock: list[int]) -> None:
    controller = Committed()
    ingest(controller).take([], 0)
    clock[0] -= 60_000
    ingest(controller).take([], 1)
    clock[0] += 120_000
    ingest(controller).take([], 2)
    assert [time.timestamp_ms for time in controller.times] == [NOW_MS, NOW_MS, NOW_MS + 60_000]


def test_a_tick_is_an_empty_batch_that_the_source_does_not_count() -> None:
    controller = Committed()
    taken = ingest(controller)
    taken.take([5_000], 0)
    assert taken.tick(NOW_MS)
    taken.take([6_000], 1)
    assert (controller.newest_batch, controller.source.batch) == (2, 1)
    assert [time.watermark_ms for time in controller.times] == [None, 4_990, 4_990]


def test_there_is_no_tick_before_its_time_nor_while_a_batch_is_ingested() -> None:
    controller = Committed()
    taken = ingest(controller)
    assert not taken.tick(NOW_MS + 1)
    ticked: list[bool] = []
    with taken.gate:
        thread = threading.Thread(target=lambda: ticked.append(taken.tick(NOW_MS)))
        thread.start()
        thread.join(5)
    assert ticked == [False]
    assert controller.newest_batch == -1


class Timers:
    def __init__(self, due_ms: int | None) -> None:
        self.due_ms = due_ms

    def next_timer_ms(self, _newest_batch: int) -> int | None:
        return self.due_ms


@pytest.mark.parametrize(
    ("due_ms", "is_idle", "ticks"), [(NOW_MS, True, 1), (NOW_MS, False, 0), (NOW_MS + 1, True, 0), (None, True, 0)]
)
def test_the_driver_ticks_when_a_timer_is_due_on_an_idle_stream(due_ms: int | None, is_idle: bool, ticks: int) -> None:
    controller: Any = Committed(is_idle=is_idle)
    nodes: Any = Timers(due_ms)
    Ticker(controller, nodes, ingest(controller)).poll()
    assert len(controller.times) == ticks


def test_a_timer_counts_only_when_its_node_has_applied_the_newest_batch() -> None:
    launcher: Any = None  # nothing is launched
    nodes = Nodes((), launcher, host="", token=secrets.token_hex(4), node_timeout_seconds=1.0, node_start_seconds=1.0)
    heartbeats: list[dict[str, Any]] = [
        {"done_batch": 4, "next_timer_ms": 100},  # may have fired in batch 5
        {"done_batch": 5, "next_timer_ms": 300},
        {"done_batch": 5, "next_timer_ms": 200},
        {"done_batch": 5, "next_timer_ms": None},
        {},
    ]
    for number, heartbeat in enumerate(heartbeats):
        nodes._known[f"node-{number}"] = _Known(f"node-{number}.1.1", 0.0, pulse=heartbeat)
    assert nodes.next_timer_ms(newest_batch=5) == 200
    assert nodes.next_timer_ms(newest_batch=6) is None
