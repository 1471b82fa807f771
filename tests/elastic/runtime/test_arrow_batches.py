"""Spark brings as many rows at a time as are safe, and measures them only while nobody knows how wide they are."""

from typing import Any

from pyspark.sql.types import LongType, StringType, StructField, StructType

from elastic.runtime.intake.arrow_batches import ArrowBatches, rows_at_once


class Session:
    """Of Spark's session, the settings."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    @property
    def conf(self) -> Any:
        return self

    def get(self, name: str) -> str:
        return self.told.get(name.rpartition(".")[2], "10000")

    def set(self, name: str, value: str) -> None:
        self.told[name.rpartition(".")[2]] = value


NUMBERS = StructType([StructField("key", LongType())])
TEXTS = StructType([StructField("key", LongType()), StructField("text", StringType())])


def told(batches: ArrowBatches, schema: StructType) -> dict[str, str]:
    session = Session()
    batches.limit(session, schema)  # type: ignore[arg-type]
    return session.told


def test_numbers_need_no_measuring() -> None:
    assert told(ArrowBatches(), NUMBERS) == {"maxRecordsPerBatch": "100000", "maxBytesPerBatch": "2147483647"}


def test_texts_are_measured_by_spark_until_some_were_seen() -> None:
    batches = ArrowBatches()
    assert told(batches, TEXTS) == {}
    batches.saw(1_000, 4_194_304)
    assert told(batches, TEXTS) == {"maxRecordsPerBatch": "1000", "maxBytesPerBatch": "2147483647"}


def test_the_widest_rows_count_and_one_row_always_fits() -> None:
    batches = ArrowBatches()
    batches.saw(0, 0)
    batches.saw(10, 10 << 30)
    batches.saw(1_000_000, 8_000_000)
    assert told(batches, TEXTS)["maxRecordsPerBatch"] == "1"
    assert rows_at_once(8.0) == 100_000
