"""Streams of texts to mine: texts by their number at a steady pace, or files that appear in a folder."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from examples.frequent_patterns.texts import Texts

_PARTITIONS = 2


def numbered_texts(spark: SparkSession, texts: Texts, per_batch: int) -> DataFrame:
    """Batch b has the texts b * per_batch to (b + 1) * per_batch - 1, whatever happens; one batch for each trigger."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", per_batch)
    return texts_of_numbers(source.option("numPartitions", _PARTITIONS).load().select("value"), texts)


def texts_of_numbers(numbers: DataFrame, texts: Texts) -> DataFrame:
    """The text of every number in the column `value`."""
    return numbers.mapInArrow(partial(_told, texts), "text string")


def texts_of_files(spark: SparkSession, folder: Path) -> DataFrame:
    """Every line of every file that appears in the folder."""
    return spark.readStream.text(str(folder)).withColumnRenamed("value", "text")


def _told(texts: Texts, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([texts.numbered(batch.column("value").to_numpy())], ["text"])
