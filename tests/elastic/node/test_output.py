"""Output of steps: written in order, reported when it is durable, and bounded in memory and time."""

import threading
import time
from typing import Any

import pytest

from elastic.core.ids import Batch, UnitId
from elastic.core.messages import StepApplied
from elastic.core.steps import Position
from elastic.core.unit_host import StepResult
from elastic.node.output import OutputWriter
from storage.errors import StoreUnavailable
from tests.elastic.node.context import Recorder, context_of

UNITS = (UnitId(0, 0),)


def result_of(batch: int, units: tuple[UnitId, ...] = UNITS) -> StepResult:
    return StepResult(Position(Batch(batch), 0), units, cause=f"e{batch}")


class Outputs:
    """A store that answers as the test says, and remembers what it was asked to write."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.batches: list[int] = []

    def store(self, result: StepResult, node: str, incarnation: str) -> StepApplied:
        self.batches.append(result.position.batch)
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return StepApplied(node, incarnation, result.position, result.units, cause=result.cause)


class AbsentStore:
    """A store that hangs, or is unavailable, at every write."""

    def __init__(self, hangs: bool) -> None:
        self.hangs = hangs
        self.asked = threading.Event()
        self.released = threading.Event()

    def store(self, *_: Any) -> Any:
        self.asked.set()
        if self.hangs:
            self.released.wait(60)
        raise StoreUnavailable("memory:", "put", "a key", "it does not answer")


def unavailable() -> StoreUnavailable:
    return StoreUnavailable("memory:", "put", "a key", "it does not answer")


def test_output_is_reported_in_order_when_it_is_durable_with_the_cause_of_its_step() -> None:
    recorder, outputs = Recorder(), Outputs(unavailable())
    writer = OutputWriter(context_of(recorder), outputs)  # type: ignore[arg-type]
    for batch in range(3):
        writer.put(result_of(batch))
    deadline = time.monotonic() + 10
    while len(recorder.reports) < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    assert writer.close()
    assert outputs.batches == [0, 0, 1, 2]
    found = [(report.position.batch, report.cause) for report in recorder.reports if isinstance(report, StepApplied)]
    assert found == [(0, "e0"), (1, "e1"), (2, "e2")]
    assert not recorder.failures


def test_output_that_cannot_be_written_fails_the_node_and_nothing_after_it_is_reported() -> None:
    recorder, outputs = Recorder(), Outputs(None, ValueError("a damaged table"))
    writer = OutputWriter(context_of(recorder), outputs)  # type: ignore[arg-type]
    for batch in range(4):
        writer.put(result_of(batch))
    assert writer.close()
    [(error, cause)] = recorder.failures
    assert (str(error), cause) == ("a damaged table", "e1")
    assert [report.cause for report in recorder.reports] == ["e0"]


def test_output_that_the_driver_has_already_is_not_written_again() -> None:
    recorder, outputs = Recorder(), Outputs()
    writer = OutputWriter(context_of(recorder), outputs)  # type: ignore[arg-type]
    writer.put(result_of(0, units=()))
    assert writer.close()
    assert outputs.batches == []


@pytest.mark.parametrize("hangs", [True, False])
def test_a_writer_closes_in_time_and_frees_a_caller_that_waits_for_room(hangs: bool) -> None:
    outputs: Any = AbsentStore(hangs)
    writer = OutputWriter(context_of(store_retry_seconds=600.0), outputs)
    full = threading.Event()

    def put() -> None:
        for batch in range(6):
            writer.put(result_of(batch))
        full.set()

    threading.Thread(target=put, daemon=True).start()
    assert outputs.asked.wait(10)
    assert not full.wait(0.1)
    if not hangs:
        writer.stop_retrying()
        assert full.wait(10)
    began = time.monotonic()
    assert writer.close(0.5) is not hangs
    assert time.monotonic() - began < 1.5
    outputs.released.set()


def test_discarded_output_is_not_written() -> None:
    recorder, outputs = Recorder(), Outputs(*[unavailable()] * 1_000)
    writer = OutputWriter(context_of(recorder), outputs)  # type: ignore[arg-type]
    for batch in range(3):
        writer.put(result_of(batch))
    writer.discard()
    writer.put(result_of(3))
    assert writer.close()
    assert not recorder.reports
    assert set(outputs.batches) <= {0}
