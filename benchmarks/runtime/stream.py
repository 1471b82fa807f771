"""The input of every engine: rows with a 64-bit key, with a given number of rows per batch and of keys."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

_MIXER = 2_654_435_761  # odd, so that consecutive values map to distant keys
SOURCE_PARTITIONS = 2


@dataclass(frozen=True)
class Stream:
    """A stream of `rows` per micro-batch, spread evenly over `keys`."""

    rows: int
    keys: int
    every: str = "0 seconds"

    def frame(self, spark: SparkSession) -> DataFrame:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.rows)
        values = source.option("numPartitions", SOURCE_PARTITIONS).load()
        return values.selectExpr(f"pmod(value * {_MIXER}, {self.keys}) AS key")
