"""All sinks by name, and the one that keeps results in memory."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from elastic.errors import InvalidSetting
from elastic.results import SINKS, DeltaSink, IcebergSink, KafkaSink, MemorySink, ParquetSink, open_sink


def table(*values: int) -> pa.Table:
    return pa.table({"value": pa.array(values, pa.int64())})


@pytest.mark.parametrize("name", ["none", "store", "memory", "parquet"])  # for others see test_sink_contract.py
def test_every_sink_takes_repeated_batches_and_batches_without_rows(name: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"folder": tmp_path.as_uri()} if name == "parquet" else {}
    sink = open_sink(name, **settings)
    assert sink.open("these") is None
    sink.deliver(0, table(1))
    sink.deliver(0, table(1))
    sink.deliver(1, table())
    sink.close()
    assert sink.needs_log or not sink.needs_writer


def test_only_one_sink_needs_no_log() -> None:
    in_process = {"none": True, "store": False, "memory": False}
    assert {name: not SINKS[name]().needs_log for name in in_process} == in_process
    assert all(sink.needs_log for sink in (ParquetSink, KafkaSink, DeltaSink, IcebergSink))


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("rabbit", "none, store, memory, parquet:file:///results, kafka://127.0.0.1:9092/topic"),
        ("memory:file:///results", "memory has no address; others have: parquet:file:///results"),
        ("parquet", "parquet:file:///results"),
        ("parquet:", "parquet:file:///results"),
        ("kafka", "kafka://127.0.0.1:9092/topic"),
        ("kafka:file:///results", "kafka://127.0.0.1:9092/topic"),
        ("delta", "delta:file:///table"),
        ("delta:", "delta:file:///table"),
        ("iceberg", "iceberg:namespace.table"),
        ("iceberg:table", "iceberg:namespace.table"),
    ],
)
def test_an_invalid_sink_is_refused_with_an_example(name: str, example: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        open_sink(name)
    assert example in str(refused.value)


def test_a_folder_of_parquet_files_is_named_in_one_string(tmp_path: Path) -> None:
    sink = open_sink(f"parquet:{tmp_path.as_uri()}")
    sink.open("these")
    sink.deliver(0, table(1))
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["batch-000000000000.parquet"]


def test_memory_holds_every_row_once_in_order() -> None:
    sink = MemorySink()
    for batch, rows in [(0, table(1, 2)), (0, table(1, 2)), (1, table()), (2, table(3)), (1, table(9))]:
        sink.deliver(batch, rows)
    assert sink.table()["value"].to_pylist() == [1, 2, 3]
    assert sink.open("these") == 3


def test_memory_is_bounded_and_says_what_it_dropped() -> None:
    sink = MemorySink(max_rows=3)
    for batch in range(10):
        sink.deliver(batch, table(batch, batch))
    assert sink.table()["value"].to_pylist() == [9, 9]
    assert sink.dropped_rows == 18
    sink.deliver(10, table(*range(50)))
    assert sink.table().num_rows == 50


def test_memory_without_results_is_an_empty_table() -> None:
    assert MemorySink().table().num_rows == 0


def test_memory_without_room_is_refused() -> None:
    with pytest.raises(InvalidSetting):
        MemorySink(max_rows=0)
