"""Streams of texts: numbered texts at a fixed rate, or files that appear in a folder."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from examples.frequent_patterns.texts import Texts

_PARTITIONS = 2


def stream_texts(spark: SparkSession, texts: Texts, per_batch: int) -> DataFrame:
    """Stream texts: batch b always has b * per_batch to (b + 1) * per_batch - 1; one batch per trigger."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", per_batch)
    return take_texts(source.option("numPartitions", _PARTITIONS).load().select("value"), texts)


def take_texts(numbers: DataFrame, texts: Texts) -> DataFrame:
    """Return the text of every number in the column `value`."""
    return numbers.mapInArrow(partial(_take, texts), "text string")


def read_files(spark: SparkSession, folder: Path) -> DataFrame:
    """Stream every line of every file that appears in the folder."""
    return spark.readStream.text(str(folder)).withColumnRenamed("value", "text")


def _take(texts: Texts, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([texts.take(batch.column("value").to_numpy())], ["text"])
