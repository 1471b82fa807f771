"""The rows of a step: staged rows within limits, the rest from the log, in the log's order."""

import threading
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import storage
from elastic.core.ids import Batch, UnitId
from elastic.core.steps import Position, Step
from elastic.core.unit_host import ReadyStep
from elastic.node.rows import RowFetcher, StagedRows
from elastic.routing import split
from elastic.routing.unit_numbers import to_ranges
from elastic.wire import Refused
from storage import Secret
from storage.state import BatchTime, InputLog, LogRef
from tests.elastic.node.context import Recorder, context_of

LOG = InputLog(storage.open("memory:"), Secret.of("a secret of this test"), "fetched")
Parts = tuple[StagedRows, RowFetcher, threading.Event]


def units_of(*tasks: int) -> tuple[UnitId, ...]:
    return tuple(UnitId(0, task) for task in tasks)


def rows_of(*tasks: int) -> pa.Table:
    return pa.table({"task": pa.array(tasks, pa.int64())})


def append(batch: int, tasks: Sequence[int], partition: int = 0) -> LogRef:
    rows = rows_of(*tasks)
    return LOG.append(batch, partition, split(rows, rows["task"].to_numpy()).slices())


def header_of(ref: LogRef, tasks: Sequence[int], covers: Sequence[int]) -> dict[str, Any]:
    rows = rows_of(*tasks)
    parts = split(rows, rows["task"].to_numpy())
    return {
        "ref": ref.to_json(),
        "covers": to_ranges(covers),
        "unit_numbers": list(parts.unit_numbers),
        "offsets": list(parts.offsets[1:]),
    }


def step_of(batch: int, *logs: LogRef) -> Step:
    return Step(Position(Batch(batch), 0), True, tuple(sorted(logs)), BatchTime(batch, 0))


def fetch(fetcher: RowFetcher, ready: ReadyStep, woken: threading.Event) -> tuple[ReadyStep, dict[int, list[int]]]:
    """Ask until there are rows; return what is ready, and the rows of each unit as numbers of tasks."""
    for _ in range(1_000):
        if (found := fetcher.fetch(ready, [])) is not None:
            part, rows = found
            return part, {
                number: [task for table in tables for task in table["task"].to_pylist()]
                for number, tables in rows.items()
            }
        assert woken.wait(10)
        woken.clear()
    raise AssertionError("never ready")


@pytest.fixture
def parts() -> Parts:
    staged, recorder = StagedRows(limit_bytes=1_000), Recorder()
    return staged, RowFetcher(context_of(recorder), staged, LOG), recorder.woken


def test_rows_of_several_stages_in_one_log_object_come_one_by_one(parts: Parts) -> None:
    staged, fetcher, woken = parts
    ref = append(1, [1, 2, 7])
    staged.upload(header_of(ref, [1, 2], covers=[1, 2, 3]), rows_of(1, 2))
    assert staged.select_covered([ref], units_of(1, 2, 3, 7)) == units_of(1, 2, 3)
    for _ in range(2):  # again, because a sender repeats what was not acknowledged
        staged.upload(header_of(ref, [7], covers=[7, 8]), rows_of(7))
    ready = ReadyStep(step_of(1, ref), units_of(1, 2, 3, 7, 8), "e1")
    assert fetch(fetcher, ready, woken) == (ready, {1: [1], 2: [2], 7: [7]})
    assert staged.size == rows_of(1, 2, 7).nbytes
    staged.forget(Batch(1))
    assert staged.size == 0


def test_units_with_staged_rows_do_not_wait_for_units_whose_rows_must_be_read(parts: Parts) -> None:
    staged, fetcher, woken = parts
    ref = append(1, [1, 2, 2, 7])
    staged.upload(header_of(ref, [1, 2, 2], covers=[1, 2, 3]), rows_of(1, 2, 2))
    ready = ReadyStep(step_of(1, ref), units_of(1, 2, 3, 7, 8), "e1")
    assert fetch(fetcher, ready, woken) == (ready._replace(units=units_of(1, 2, 3)), {1: [1], 2: [2, 2]})
    rest = ready._replace(units=units_of(7, 8))
    assert fetch(fetcher, rest, woken) == (rest, {7: [7]})
    fetcher.close()


def test_rows_that_are_staged_for_one_log_object_only_are_read_from_the_log(parts: Parts) -> None:
    staged, fetcher, woken = parts
    first, second = append(4, [1, 2], partition=0), append(4, [1], partition=1)
    staged.upload(header_of(first, [1, 2], covers=[1, 2]), rows_of(1, 2))
    ready = ReadyStep(step_of(4, first, second), units_of(1, 2))
    assert fetch(fetcher, ready, woken) == (ready, {1: [1, 1], 2: [2]})
    fetcher.close()


def test_a_unit_that_only_one_of_two_staged_log_objects_covers_is_read_from_the_log(parts: Parts) -> None:
    staged, fetcher, woken = parts
    first, second = append(5, [1, 2], partition=0), append(5, [1, 2], partition=1)
    staged.upload(header_of(first, [1, 2], covers=[1, 2]), rows_of(1, 2))
    staged.upload(header_of(second, [1], covers=[1]), rows_of(1))
    ready = ReadyStep(step_of(5, first, second), units_of(1, 2))
    assert fetch(fetcher, ready, woken) == (ready._replace(units=units_of(1)), {1: [1, 1]})
    rest = ready._replace(units=units_of(2))
    assert fetch(fetcher, rest, woken) == (rest, {2: [2, 2]})
    fetcher.close()


@pytest.mark.parametrize("is_staged", [True, False])
def test_slices_of_a_unit_come_in_the_order_of_the_log_not_of_their_arrival(parts: Parts, is_staged: bool) -> None:
    staged, fetcher, woken = parts
    later, sooner = append(2, [5, 5], partition=1), append(2, [5], partition=0)
    if is_staged:
        staged.upload(header_of(later, [5, 5], covers=[5]), rows_of(5, 5))
        staged.upload(header_of(sooner, [5], covers=[5]), rows_of(5))
    ready = ReadyStep(step_of(2, later, sooner), units_of(5))
    found = None
    while found is None:
        found = fetcher.fetch(ready, [])
        assert found is not None or woken.wait(10)
        woken.clear()
    assert [table.num_rows for table in found[1][5]] == [1, 2]
    fetcher.close()


def test_staging_refuses_what_does_not_fit_and_rows_of_batches_that_are_done(parts: Parts) -> None:
    staged, fetcher, _ = parts
    many = list(range(200))
    with pytest.raises(Refused, match="no room for 1600 more"):
        staged.upload(header_of(append(3, many), many, covers=many), rows_of(*many))
    few = header_of(append(3, [1]), [1], covers=[1])
    staged.upload(few, rows_of(1))
    staged.upload(few, rows_of(1))  # a repetition takes no more room
    assert staged.size == 8
    staged.forget(through=Batch(3))
    assert staged.size == 0
    with pytest.raises(Refused, match="have taken batch 3"):
        staged.upload(few, rows_of(1))
    fetcher.close()


def test_a_result_does_not_wait_for_rows_that_are_read_at_low_priority(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit that has taken over needs what it was about to follow: at once, and not when there is time for it."""
    _, fetcher, woken = parts
    following = ReadyStep(step_of(6, append(6, [1, 2])), units_of(1, 2), standby=True)
    released, read = threading.Event(), fetcher._read

    def read_slowly(*arguments: Any) -> Any:
        if threading.current_thread().name.startswith("fetch-standby"):
            assert released.wait(10)
        return read(*arguments)

    monkeypatch.setattr(fetcher, "_read", read_slowly)
    assert fetcher.fetch(following, []) is None
    active = following._replace(units=units_of(1), standby=False)
    assert fetch(fetcher, active, woken) == (active, {1: [1]})
    released.set()
    assert fetch(fetcher, following, woken) == (following, {1: [1], 2: [2]})
    fetcher.close()
