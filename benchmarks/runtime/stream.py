"""The one stream that every engine gets: rows with a 64-bit key, as many a batch and over as many keys as asked."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

_MIXER = 2_654_435_761  # odd, so consecutive values fall on keys far apart
SOURCE_PARTITIONS = 2


@dataclass(frozen=True)
class Stream:
    """`rows` in every micro-batch, spread evenly over `keys`."""

    rows: int
    keys: int
    every: str = "0 seconds"

    def frame(self, spark: SparkSession) -> DataFrame:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.rows)
        values = source.option("numPartitions", SOURCE_PARTITIONS).load()
        return values.selectExpr(f"pmod(value * {_MIXER}, {self.keys}) AS key")
