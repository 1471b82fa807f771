"""`elastic.transform_with_state`: a job that runs one of PySpark's stateful processors."""

import re
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation uses
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

from elastic.errors import InvalidJob, UnknownColumn
from elastic.operators.stages import Stage, to_key_columns
from elastic.spark import checks
from elastic.spark.job import SparkJob
from elastic.spark.processors.operator import INITIAL, ProcessorOperator
from elastic.spark.run import run

_DELAY = "spark.watermarkDelayMs"  # where withWatermark() leaves the delay, in the metadata of its column
_ROWS_PER_FRAME = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES_PER_FRAME = "spark.sql.execution.arrow.maxBytesPerBatch"
_COERCES_INTEGERS = "spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled"
_TIME_ZONE = "spark.sql.session.timeZone"
_SIZE = re.compile(r"(-?\d+)([kmgt]?)(?:i?b)?")


def transform_with_state(
    df: DataFrame,
    *,
    key: str | Sequence[str],
    processor: StatefulProcessor,
    output_schema: StructType | str,
    output_mode: str = "Append",
    time_mode: str = "None",
    initial_state: DataFrame | GroupedData | None = None,
    pandas: bool = False,
    grouping: str = "hash",
    event_time: str | None = None,
    watermark_delay: str | None = None,
    **arguments: Any,
) -> SparkJob:
    """Start a job that runs a `StatefulProcessor`, as `df.groupBy(key).transformWithState(...)` would.

    `pandas` says that the processor is one for `transformWithStateInPandas`. `initial_state` is a batch DataFrame with
    the key columns; its rows come before those of the first batch, exactly once. Event time and delay are those of
    `df.withWatermark(...)`, unless they are given. `arguments`, such as `name`, `store`, `nodes` and `sink`, are those
    of `elastic.run`.
    """
    checks.check_frame(df)
    columns = to_key_columns(key)
    if event_time is None:
        event_time, watermark_delay = _find_watermark(df, watermark_delay)
    conf = df.sparkSession.conf
    operator = ProcessorOperator(
        processor,
        output_schema,
        output_mode=output_mode,
        time_mode=time_mode,
        pandas=pandas,
        event_time=event_time,
        rows_per_frame=int(conf.get(_ROWS_PER_FRAME) or 0),
        bytes_per_frame=_parse_bytes(str(conf.get(_BYTES_PER_FRAME) or 0)),
        timezone=str(conf.get(_TIME_ZONE)),
        coerces_integers=str(conf.get(_COERCES_INTEGERS)).lower() == "true",
    )
    first_rows = None
    if initial_state is not None:
        initial = _to_frame(initial_state)
        _check_initial(initial, df, columns)
        df, first_rows = _with_initial(df, initial, columns)
    return run(
        df,
        key=columns,
        operator=Stage(operator, grouping=grouping),
        event_time=event_time,
        watermark_delay=watermark_delay,
        first_rows=first_rows,
        **{"null_keys": "keep", **arguments},
    )


def _parse_bytes(text: str) -> int:
    """Return the number of bytes in one of Spark's sizes, such as "2147483647", "64m" or "256MB"."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise InvalidJob(f"{_BYTES_PER_FRAME} is {text!r}. Set it to a number of bytes, such as 268435456 or 256m.")
    return int(match[1]) << 10 * " kmgt".index(match[2] or " ")


def _find_watermark(df: DataFrame, delay: str | None) -> tuple[str | None, str | None]:
    """Return the column and the delay of `withWatermark`; None without one. A delay that is given is kept."""
    for field in df.schema:
        if _DELAY in field.metadata:
            return field.name, delay or f"{int(field.metadata[_DELAY])} ms"
    return None, delay


def _to_frame(initial: DataFrame | GroupedData) -> DataFrame:
    """Return the rows of an initial state, which Spark takes as `groupBy(key)` of them."""
    frame = initial._df if isinstance(initial, GroupedData) else initial  # noqa: SLF001 - it has no public name
    if not isinstance(frame, DataFrame) or frame.isStreaming:
        what = "a stream" if isinstance(frame, DataFrame) else f"a {type(frame).__name__}"
        raise InvalidJob(f"initial_state is {what}. Give a DataFrame that is not a stream.")
    return frame


def _check_initial(initial: DataFrame, df: DataFrame, key: tuple[str, ...]) -> None:
    for column in key:
        for frame in (df, initial):
            if column not in frame.columns:
                raise UnknownColumn(column, frame.columns)
        ours, theirs = df.schema[column].dataType, initial.schema[column].dataType
        if ours != theirs:
            raise InvalidJob(
                f"key column {column!r} is {theirs.simpleString()} in the initial state and {ours.simpleString()} in "
                "the stream. Cast one of them."
            )


def _with_initial(df: DataFrame, initial: DataFrame, key: tuple[str, ...]) -> tuple[DataFrame, DataFrame]:
    """Return the stream and the initial state with the same columns: see `processors.initial`."""
    state = initial.select(*key, F.struct(*initial.columns).alias(INITIAL))
    kind = state.schema[INITIAL].dataType
    first = state.select(
        *[F.col(c) if c in key else F.lit(None).cast(df.schema[c].dataType).alias(c) for c in df.columns], INITIAL
    )
    return df.withColumn(INITIAL, F.lit(None).cast(kind)), first
