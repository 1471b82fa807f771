"""The writers of several sinks: none waits for another, and results are kept for the slowest."""

import threading

import pyarrow as pa
import pytest

from elastic.results import MemorySink, SinkWriter
from elastic.results.sink_writers import SinkWriters
from storage.stores.memory import MemoryStore
from tests.elastic.results.world import STAGE, expected, published_log

SOON = 10.0


class GatedSink(MemorySink):
    """Takes batches up to one, and the others when the gate opens."""

    def __init__(self, through: int) -> None:
        super().__init__()
        self.through = through
        self.gate = threading.Event()
        self.identity = ""

    def open(self, results: str) -> int | None:
        self.identity = results
        return super().open(results)

    def deliver(self, batch: int, rows: pa.Table) -> None:
        if batch > self.through:
            assert self.gate.wait(SOON)
        super().deliver(batch, rows)


class FullSink(MemorySink):
    def deliver(self, _batch: int, _rows: pa.Table) -> None:
        raise OSError("no space left")


def test_results_are_kept_for_the_slowest_of_the_sinks(store: MemoryStore) -> None:
    fast, slow, log = MemorySink(), GatedSink(1), published_log(store, 5)
    writers = SinkWriters({"a": SinkWriter(log, STAGE, fast), "b": SinkWriter(log, STAGE, slow)})
    assert writers.needed_from == 0
    writers.start()
    assert writers.by_stage["a"].wait(4, SOON)
    assert writers.by_stage["b"].wait(1, SOON)
    assert writers.needed_from == 2
    assert log.expire(1, writers.needed_from).batches == 2
    assert writers.wait(4, 0.05) == "the sink of stage 'b'"
    slow.gate.set()
    assert writers.wait(4, SOON) is None
    assert writers.needed_from == 5
    assert slow.table() == fast.table()
    assert writers.stop(SOON) == []


def test_one_that_fails_holds_up_no_other_and_still_needs_its_results(store: MemoryStore) -> None:
    sink, log = MemorySink(), published_log(store, 3)
    writers = SinkWriters({"a": SinkWriter(log, STAGE, FullSink()), "b": SinkWriter(log, STAGE, sink)})
    writers.start()
    assert writers.wait(2, SOON) is None
    assert sink.table().to_pylist() == [row for batch in range(3) for row in expected(batch)]
    assert writers.failure == "stage 'a': OSError: no space left"
    assert isinstance(writers.error, OSError)
    assert writers.needed_from == 0
    assert writers.stop(SOON) == []


def test_all_are_drained_at_the_same_time_within_one_bound(store: MemoryStore) -> None:
    log = published_log(store, 3)
    slow = [GatedSink(0), GatedSink(0)]
    writers = SinkWriters({f"s{n}": SinkWriter(log, STAGE, sink) for n, sink in enumerate(slow)})
    writers.start()
    for n in range(2):
        assert writers.by_stage[f"s{n}"].wait(0, SOON)
    for sink in slow:
        threading.Timer(0.1, sink.gate.set).start()
    assert writers.stop(SOON) == []
    assert all(sink.table().num_rows == len([r for b in range(3) for r in expected(b)]) for sink in slow)


def test_what_is_not_drained_in_time_is_named(store: MemoryStore) -> None:
    log, sink = published_log(store, 3), GatedSink(0)
    writers = SinkWriters({"A b": SinkWriter(log, STAGE, sink), "c": SinkWriter(log, STAGE, MemorySink())})
    writers.start()
    assert writers.by_stage["A b"].wait(0, SOON)
    [sentence] = writers.stop(0.1)
    assert sentence == "The sink of stage 'A b' has not taken batch 1 and those after it; the next run delivers them."
    sink.gate.set()


def test_an_only_sink_is_not_named_by_its_stage(store: MemoryStore) -> None:
    log, sink = published_log(store, 3), GatedSink(0)
    writers = SinkWriters({"count": SinkWriter(log, STAGE, sink)})
    writers.start()
    assert writers.by_stage["count"].wait(0, SOON)
    assert writers.wait(2, 0.01) == "the sink"
    assert writers.stop(0.1) == ["The sink has not taken batch 1 and those after it; the next run delivers them."]
    sink.gate.set()


def test_a_job_without_sinks_waits_for_none() -> None:
    writers = SinkWriters({})
    writers.start()
    writers.notify()
    assert [writers.needed_from, writers.failure, writers.error, writers.wait(7)] == [None] * 4
    assert writers.stop(0.0) == []


@pytest.mark.parametrize("part", ["", "per%20seller"])
def test_the_results_of_a_part_have_an_identity_of_their_own(part: str, store: MemoryStore) -> None:
    log, sink = published_log(store, 1), GatedSink(9)
    writer = SinkWriter(log, STAGE, sink, part=part).start()
    assert writer.wait(0, SOON)
    assert writer.stop()
    assert sink.identity == (f"{log.read_identity()}.{part}" if part else log.read_identity())
