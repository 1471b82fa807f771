"""Spark transfers as many rows at a time as are safe, and measures them only while their width is unknown."""

from typing import Any

from pyspark.sql.types import LongType, StringType, StructField, StructType

from elastic.spark.arrow_batches import ArrowBatches, rows_per_batch


class Session:
    """Of Spark's session, the settings."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    @property
    def conf(self) -> Any:
        return self

    def get(self, name: str) -> str:
        return self.values.get(name.rpartition(".")[2], "10000")

    def set(self, name: str, value: str) -> None:
        self.values[name.rpartition(".")[2]] = value


NUMBERS = StructType([StructField("key", LongType())])
TEXTS = StructType([StructField("key", LongType()), StructField("text", StringType())])


def limits(batches: ArrowBatches, schema: StructType) -> dict[str, str]:
    session = Session()
    batches.configure(session, schema)  # type: ignore[arg-type]
    return session.values


def test_numbers_need_no_measuring() -> None:
    assert limits(ArrowBatches(), NUMBERS) == {"maxRecordsPerBatch": "100000", "maxBytesPerBatch": "2147483647"}


def test_texts_are_measured_by_spark_until_some_were_seen() -> None:
    batches = ArrowBatches()
    assert limits(batches, TEXTS) == {}
    batches.record(1_000, 4_194_304)
    assert limits(batches, TEXTS) == {"maxRecordsPerBatch": "1000", "maxBytesPerBatch": "2147483647"}


def test_the_widest_rows_count_and_one_row_always_fits() -> None:
    batches = ArrowBatches()
    batches.record(0, 0)
    batches.record(10, 10 << 30)
    batches.record(1_000_000, 8_000_000)
    assert limits(batches, TEXTS)["maxRecordsPerBatch"] == "1"
    assert rows_per_batch(8.0) == 100_000
