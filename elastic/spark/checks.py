"""Checks before a job starts: a job that cannot run is refused with a reason, and nothing has changed."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import cloudpickle
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import TimestampNTZType, TimestampType

from elastic.core.pipeline import describe_pipeline
from elastic.errors import (
    InvalidEventTime,
    InvalidJob,
    InvalidSetting,
    InvalidStore,
    SparkConnectUnsupported,
    SpeculationEnabled,
    UnknownColumn,
    UnserializableOperator,
    UnsupportedKeyType,
)
from elastic.numbers import as_int
from elastic.operators import Stage
from elastic.operators.graph import Input
from elastic.results import Description
from elastic.spark.failures import find_root_cause
from elastic.store_access import StoreAccess
from storage import Store
from storage.errors import InvalidStorageInput
from storage.stores.keys import to_key_segment

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MAX_NAME_SEGMENT = 180  # as a segment of a key, in which a dot takes three characters


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidSetting(
            "name",
            name,
            "it names files: use at most 100 letters, digits, '.', '_' and '-', and start with a letter or digit",
        )
    if len(to_key_segment(name)) > _MAX_NAME_SEGMENT:
        raise InvalidSetting("name", name, "it has too many dots for a file name; use '-' or '_' instead")


def check_counts(tasks: int, nodes: int) -> tuple[int, int]:
    """Return both as Python integers; raise `InvalidSetting` if they are not positive or a node would have no task."""
    for name, value in (("tasks", tasks), ("nodes", nodes)):
        if (as_int(value) or 0) < 1:
            raise InvalidSetting(name, value, "it must be a whole number, at least 1")
    if nodes > tasks:
        raise InvalidSetting(
            "nodes", nodes, f"there are only {tasks} tasks, and every node needs one. Raise tasks or use fewer nodes"
        )
    return int(tasks), int(nodes)


def check_frame(frame: DataFrame) -> None:
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise SparkConnectUnsupported
    if not isinstance(frame, DataFrame):
        raise InvalidJob(f"df is a {type(frame).__name__}, not a DataFrame. Create a stream with spark.readStream.")
    if not frame.isStreaming:
        raise InvalidJob("the DataFrame is not a stream. Create it with spark.readStream.")


def check_batch_frame(frame: DataFrame) -> None:
    """Refuse an initial state that is not a batch DataFrame."""
    if not isinstance(frame, DataFrame) or frame.isStreaming:
        what = "a stream" if isinstance(frame, DataFrame) else f"a {type(frame).__name__}"
        raise InvalidJob(f"initial_state is {what}. Give a DataFrame that is not a stream.")


def check_event_time(frame: DataFrame, column: str | None, watermark_delay: str | None) -> None:
    if column is None:
        if watermark_delay is not None:
            why = "a watermark needs event times. Name their column with event_time"
            raise InvalidSetting("watermark_delay", watermark_delay, why)
        return
    if column not in frame.columns:
        raise UnknownColumn(column, frame.columns)
    kind = frame.schema[column].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType):
        raise InvalidEventTime(column, kind.simpleString())


def check_trigger(frame: DataFrame, trigger: Mapping[str, Any]) -> None:
    """Refuse a trigger that Spark would only refuse when the nodes are running."""
    if not trigger:
        return
    try:
        frame.writeStream.trigger(**trigger)
    except (PySparkException, TypeError) as cause:
        raise InvalidSetting("trigger", dict(trigger), find_root_cause(str(cause))) from cause


def open_store(access: StoreAccess) -> Store:
    """Open the job's store; `InvalidStore` for a URL or settings that cannot be right."""
    if urlsplit(access.url).scheme == "memory":
        raise InvalidStore("a memory: store lives in one process, and nodes run in others. Use file: or s3:")
    try:
        return access.open()
    except InvalidStorageInput as cause:
        raise InvalidStore(str(cause)) from cause


def check_cluster(spark: SparkSession) -> None:
    """Raise `SpeculationEnabled` if Spark may start a second copy of a node."""
    conf = spark.sparkContext.getConf()
    if (conf.get("spark.speculation") or "false").lower() == "true":
        raise SpeculationEnabled


def is_local(master: str) -> bool:
    return master.startswith("local")


def describe_job(inputs: Sequence[Input], stages: Sequence[Stage], tasks: int) -> Description:
    """Return the description that nodes get; refuse keys that have no hash and operators that cannot be sent."""
    keys = {column for stage in stages for column in (*stage.cost_key, *stage.key, *_list_key_columns(stage))}
    for each in inputs:
        frame: DataFrame = each.rows
        columns = each.columns or {column: column for column in frame.columns}
        grouped_by = stages[0].cost_key or stages[0].key if len(stages) == 1 else keys.union(each.key)
        _refuse_collations(frame, [columns[name] for name in grouped_by if name in columns])
    for stage in stages:
        check_operator(stage)
    specs = [each.bind(_to_arrow_schema(each.rows)) for each in inputs]
    return describe_pipeline(stages, specs, tasks)


def _list_key_columns(stage: Stage) -> list[str]:
    """Return the columns of what a stage reads that become its key."""
    return [column for _, key in stage.inputs for column in key]


def _to_arrow_schema(frame: DataFrame) -> pa.Schema:
    """Return the schema of the rows as Spark sends them to Python: times in the session's zone, no metadata."""
    conf = frame.sparkSession.conf
    large = conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false") == "true"
    zone = conf.get("spark.sql.session.timeZone")
    return to_arrow_schema(frame.schema, timezone=zone, prefers_large_types=large).remove_metadata()


def _refuse_collations(frame: DataFrame, key: Sequence[str]) -> None:
    """Refuse key columns with a collation: equal keys would have different bytes, and so different hashes."""
    for field in frame.schema:
        collation = getattr(field.dataType, "collation", None)
        if field.name in key and collation not in (None, "UTF8_BINARY"):
            raise UnsupportedKeyType(field.name, f"a string with collation {collation}")


def check_operator(stage: Stage) -> None:
    try:
        cloudpickle.dumps(stage.operator)
    except Exception as cause:
        raise UnserializableOperator(stage.name, cause) from cause
