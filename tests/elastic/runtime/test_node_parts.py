"""What a node keeps and fetches: staged rows within limits, the rest from the log, in the log's order."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import storage
from elastic.routing import split
from elastic.routing.slots import runs
from elastic.runtime.node.fetching import Fetcher
from elastic.runtime.node.staging import Staging
from elastic.runtime.protocol import Position, Step, Work
from elastic.runtime.wire import Refused
from storage import Secret
from storage.state import BatchTime, InputLog, LogRef

LOG = InputLog(storage.open("memory:"), Secret.of("a secret of this test"), "fetched")


def rows_of(*slots: int) -> pa.Table:
    return pa.table({"slot": pa.array(slots, pa.int64())})


def logged(batch: int, slots: Sequence[int], partition: int = 0) -> LogRef:
    rows = rows_of(*slots)
    return LOG.append(batch, partition, split(rows, rows["slot"].to_numpy()).slices())


def header(ref: LogRef, slots: Sequence[int], covers: Sequence[int]) -> dict[str, Any]:
    rows = rows_of(*slots)
    parts = split(rows, rows["slot"].to_numpy())
    return {
        "ref": ref.to_json(),
        "covers": runs(covers),
        "slots": list(parts.slots),
        "offsets": list(parts.offsets[1:]),
    }


def step(batch: int, *logs: LogRef) -> Step:
    return Step(Position(batch, 0), True, tuple(sorted(logs)), BatchTime(batch, 0))


def fetched(fetcher: Fetcher, work: Work, woken: threading.Event) -> tuple[Work, dict[int, list[int]]]:
    for _ in range(1_000):
        if (ready := fetcher.ready(work, [])) is not None:
            taken, rows = ready
            return taken, {
                slot: [n for table in tables for n in table["slot"].to_pylist()] for slot, tables in rows.items()
            }
        assert woken.wait(10)
        woken.clear()
    raise AssertionError("never ready")


@pytest.fixture
def parts() -> tuple[Staging, Fetcher, threading.Event]:
    staging, woken = Staging(limit_bytes=1_000), threading.Event()
    return staging, Fetcher(staging, LOG, 5.0, woken.set), woken


def test_staged_slots_do_not_wait_for_slots_that_must_be_read(parts: tuple[Staging, Fetcher, threading.Event]) -> None:
    staging, fetcher, woken = parts
    ref = logged(1, [1, 2, 2, 7])
    staging.upload(header(ref, [1, 2, 2], covers=[1, 2, 3]), rows_of(1, 2, 2))
    work = Work(step(1, ref), (1, 2, 3, 7, 8))
    assert fetched(fetcher, work, woken) == (Work(work.step, (1, 2, 3)), {1: [1], 2: [2, 2]})
    rest = Work(work.step, (7, 8))
    assert fetched(fetcher, rest, woken) == (rest, {7: [7]})
    fetcher.close()


def test_slices_of_a_slot_come_in_the_order_of_the_log(parts: tuple[Staging, Fetcher, threading.Event]) -> None:
    _, fetcher, _ = parts
    later, sooner = logged(2, [5, 5], partition=1), logged(2, [5], partition=0)
    work = Work(step(2, later, sooner), (5,))
    ready = None
    while ready is None:
        ready = fetcher.ready(work, [])
        time.sleep(0.001)
    assert [table.num_rows for table in ready[1][5]] == [1, 2]
    fetcher.close()


def test_staging_refuses_what_does_not_fit_and_what_is_over(parts: tuple[Staging, Fetcher, threading.Event]) -> None:
    staging, fetcher, _ = parts
    many = list(range(200))
    with pytest.raises(Refused):
        staging.upload(header(logged(3, many), many, covers=many), rows_of(*many))
    few = header(logged(3, [1]), [1], covers=[1])
    staging.upload(few, rows_of(1))
    staging.upload(few, rows_of(1))  # a repetition takes no more room
    assert staging.size == 8
    staging.forget(through=3)
    assert staging.size == 0
    with pytest.raises(Refused):
        staging.upload(few, rows_of(1))
    fetcher.close()
