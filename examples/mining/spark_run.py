"""The same job on a local Spark, fed with files."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import elastic
from elastic.operators import Stage
from examples.frequent_patterns.local_spark import quiet_spark
from examples.mining.run import MORE_NODES, NODES, TASKS, Feed, Size

_DDL = {pa.string(): "string", pa.int64(): "long", pa.float64(): "double"}


@contextmanager
def start_on_local_spark(
    stages: Sequence[Stage], key: str | Sequence[str], schema: pa.Schema, size: Size
) -> Iterator[Feed]:
    """Start a local Spark, and a job on it; stop both at the end of the block."""
    with (
        quiet_spark(MORE_NODES) as spark,
        tempfile.TemporaryDirectory(prefix="mining-", ignore_cleanup_errors=True) as folder,
        start_on_spark(spark, Path(folder), stages, key, schema, size) as feed,
    ):
        yield feed


@contextmanager
def start_on_spark(
    spark: SparkSession,
    folder: Path,
    stages: Sequence[Stage],
    key: str | Sequence[str],
    schema: pa.Schema,
    size: Size,
) -> Iterator[Feed]:
    """Start a job on a Spark session, with its source and its state in a folder."""
    source = folder / "source"
    source.mkdir()
    columns = ", ".join(f"{field.name} {_DDL[field.type]}" for field in schema)
    with elastic.run(
        spark.readStream.schema(columns).parquet(str(source)),
        key=key,
        operator=stages,
        name="mining",
        store=(folder / "store").as_uri(),
        sink="memory",
        nodes=NODES,
        tasks=TASKS,
    ) as job:
        yield Feed(job, size.batches, lambda rows: _write(rows, source))


def _write(rows: pa.Table, source: Path) -> None:
    number = len(list(source.glob("*.parquet")))
    hidden = source / f".{number:06d}"  # Spark ignores it until it is renamed, so that it never reads a part of a file
    pq.write_table(rows, hidden)
    hidden.rename(source / f"{number:06d}.parquet")
