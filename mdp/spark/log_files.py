"""Read log files into a Spark frame of records."""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias
from pyspark.sql.types import DataType, DateType, NumericType, StringType, TimestampNTZType, TimestampType

from mdp.errors import InvalidLog
from mdp.learning.log_files import HAS_ZONE, SECONDS, list_log_files, missing_column_error


def read_records(spark: SparkSession, paths: Sequence[str], time_column: str, value_column: str) -> DataFrame:
    """`at` (microseconds since 1970) and `value`, both null where they cannot be read, and the place of the record.

    `place` orders records as they are in the files, file after file; `time_text` and `value_text` are for messages.
    """
    if not paths:
        raise InvalidLog("no log was named. Give at least one file.")
    frames = [
        _of_file(spark, file, number, time_column, value_column)
        for number, file in enumerate(file for path in paths for file in _files(path))
    ]
    return reduce(DataFrame.unionByName, frames)


def _files(path: str) -> list[str]:
    """List local folders here, so that both engines read the same files; Spark lists others."""
    return [path] if "://" in path else [str(file) for file in list_log_files(Path(path))]


def _of_file(spark: SparkSession, file: str, number: int, time_column: str, value_column: str) -> DataFrame:
    try:
        if file.endswith((".csv", ".csv.gz")):
            frame = spark.read.option("header", True).csv(file)
        else:
            frame = spark.read.parquet(file)
    except AnalysisException as cause:
        raise InvalidLog(f"there is no log at {file}: {cause.getCondition()}. Give a CSV or Parquet file.") from cause
    for name in (time_column, value_column):
        if name not in frame.columns:
            raise missing_column_error(name, file, frame.columns)
    time, value = _to_column(time_column), _to_column(value_column)
    place = F.struct(
        F.lit(number).alias("file_number"),
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("row"),
    )
    return frame.select(
        _microseconds(time, frame.schema[time_column].dataType).alias("at"),
        value.try_cast("double").alias("value"),
        place.alias("place"),
        time.cast("string").alias("time_text"),
        value.cast("string").alias("value_text"),
    )


def _to_column(column: str) -> Column:
    """Whatever the name: a dot in it is no path into a struct."""
    escaped = column.replace("`", "``")
    return F.col(f"`{escaped}`")


def _microseconds(time: Column, kind: DataType) -> Column:
    """Times without a zone are UTC, whatever the zone of the session."""
    if isinstance(kind, TimestampType):
        return F.unix_micros(time)
    if isinstance(kind, NumericType):
        return _of_seconds(time)
    if isinstance(kind, StringType | TimestampNTZType | DateType):
        text = time.cast("string")
        zone = (
            F.when(text.rlike(HAS_ZONE), F.lit("")).when(text.contains(":"), F.lit("Z")).otherwise(F.lit("T00:00:00Z"))
        )
        iso = F.unix_micros(F.concat(text, zone).try_cast("timestamp"))
        # Matched first: a failing cast costs more than all the rest.
        return F.when(text.rlike(SECONDS), _of_seconds(text)).otherwise(iso)
    raise InvalidLog(f"the time column is {kind.simpleString()}. Give text, timestamps, or seconds since 1970.")


def _of_seconds(number: Column) -> Column:
    return F.round(number.try_cast("double") * 1e6).try_cast("long")
