"""PySpark's stateful processors on Spark's own engine and on this one: the same processor gives the same rows."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import elastic
from elastic.errors import InvalidJob, InvalidProcessor
from tests.spark.jobs import Feed, changed_conf

pytestmark = pytest.mark.spark

INPUT = "id string, price double, n int, at timestamp"
OUTPUT = "id string, what string, at timestamp"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BATCHES: list[list[tuple[str, float, int]]] = [
    [("a", 1.5, 1), ("b", 2.5, 2), ("a", 0.1, 2**31 - 1)],
    [("b", 1e300, 7), ("c", 0.0, -1), ("z", 9.0, 9)],
    [("a", 2.0, 5), ("z", 1.0, 1)],
]


class Everything(StatefulProcessor):
    """Uses every kind of state, with values that the state store changes on their way."""

    def __init__(self, pandas: bool) -> None:
        self._pandas = pandas

    def init(self, handle: Any) -> None:
        self._sum = handle.getValueState("sum", "total int, mean float, text string, exact decimal(9,2)")
        self._list = handle.getListState("list", "at timestamp, tags array<string>")
        self._map = handle.getMapState("map", "n int", "s struct<x: int, y: double>")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        start = int(initialState["start"].sum()) if self._pandas else initialState.start
        self._sum.update((start, float(start), "initial", None))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        for price, n, at in self._values(rows):
            known = self._sum.get() or (0, 0.0, None, None)
            self._sum.update((known[0] + n, known[1] + price, len(key), key[0]))
            self._list.appendValue((at, [key[0], "x"] * (n % 2)))
            self._map.updateValue((n % 3,), ((n, n),))
        held = [self._sum.get(), sorted((str(at.replace(tzinfo=None)), tags) for at, tags in self._list.get())]
        yield self._row(key[0], str([*held, sorted((k, tuple(v[0])) for k, v in self._map.iterator())]))
        clocks = timerValues.getCurrentProcessingTimeInMs(), timerValues.getCurrentWatermarkInMs()
        yield self._row(key[0], f"{type(key).__name__} {clocks} {self._sum.exists()} {self._map.containsKey((5,))}")

    def close(self) -> None:
        """Release nothing."""

    def _values(self, rows: Any) -> Iterator[tuple[float, int, Any]]:
        if not self._pandas:
            return ((row.price, row.n, row.at) for row in rows)
        frames = [frame.sort_values("n") for frame in rows]
        columns = [[value for frame in frames for value in frame[name].tolist()] for name in ("price", "n", "at")]
        return zip(*columns, strict=True)

    def _row(self, key: str, what: str) -> Any:
        if self._pandas:
            return pd.DataFrame({"id": [key], "what": [what], "at": [pd.Timestamp(2024, 1, 1)]})
        return Row(id=key, what=what, at=pd.Timestamp(2024, 1, 1).to_pydatetime())


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "input")


def send(feed: Feed, number: int) -> None:
    rows = sorted(BATCHES[number], key=lambda row: row[2])  # the pandas form sorts: Spark may shuffle the rows of a key
    feed.send(*({"id": i, "price": p, "n": n, "at": f"2024-03-01T10:00:0{number}"} for i, p, n in rows))


def one_file_a_batch(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(INPUT).option("maxFilesPerTrigger", 1).json(str(folder))


def run_on_spark(frame: DataFrame, initial: DataFrame, pandas: bool) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    grouped = frame.groupBy("id")
    run: Callable[..., DataFrame] = grouped.transformWithStateInPandas if pandas else grouped.transformWithState
    streamed = run(Everything(pandas), OUTPUT, "Update", "None", initialState=initial.groupBy("id"))
    query = (
        streamed.writeStream.outputMode("update")
        .foreachBatch(lambda rows, _: found.update(map(tuple, rows.collect())))
        .start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return found


@pytest.mark.parametrize("pandas", [False, True], ids=["rows", "pandas"])
def test_a_processor_emits_what_it_emits_on_spark(
    spark: SparkSession, feed: Feed, tmp_path: Path, *, pandas: bool
) -> None:
    initial = spark.createDataFrame([("a", 10), ("z", 100)], "id string, start int")
    frame = one_file_a_batch(spark, tmp_path / "input")
    with elastic.transform_with_state(
        frame,
        key="id",
        processor=Everything(pandas),
        output_schema=OUTPUT,
        output_mode="Update",
        initial_state=initial.groupBy("id"),
        pandas=pandas,
        name="everything",
        store=(tmp_path / "store").as_uri(),
        nodes=2,
        tasks=8,
        sink="memory",
    ) as job:
        for number in range(len(BATCHES)):
            send(feed, number)
            job.process_all_available()
            if not number:
                job.scale(3).wait()
        ours = Counter((row["id"], row["what"], row["at"].replace(tzinfo=None)) for row in job.collected().to_pylist())
        assert job.state("z")["sum"]["total"] == 110
    with changed_conf(spark, spark_sql_shuffle_partitions="2", spark_sql_streaming_stateStore_providerClass=ROCKSDB):
        theirs = run_on_spark(frame, initial, pandas)
    assert ours == theirs


def test_event_time_comes_from_the_watermark_of_the_stream(feed: Feed, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {
        "key": "id",
        "processor": Everything(False),
        "output_schema": OUTPUT,
        "time_mode": "EventTime",
        "name": "events",
        "store": (tmp_path / "store").as_uri(),
        "nodes": 1,
        "tasks": 2,
        "sink": "memory",
    }
    with pytest.raises(InvalidProcessor, match="needs a watermark"):
        elastic.transform_with_state(feed.frame(INPUT), **arguments)
    with pytest.raises(InvalidJob, match="initial_state is a stream"):
        elastic.transform_with_state(
            feed.frame(INPUT).withWatermark("at", "1 minute"), initial_state=feed.frame(INPUT), **arguments
        )
    with elastic.transform_with_state(feed.frame(INPUT).withWatermark("at", "1 minute"), **arguments) as job:
        for minute in (10, 12, 5):
            feed.send({"id": "a", "price": 1.0, "n": 1, "at": f"2024-03-01T10:{minute:02}:00"})
            job.process_all_available()
        assert job.state("a")["sum"]["total"] == 2  # the last row is late
