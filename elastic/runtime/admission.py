"""What is checked before anything starts: a job that cannot run is refused with a reason, and nothing has changed."""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

import cloudpickle
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import TimestampNTZType, TimestampType

from elastic.errors import (
    InvalidEventTime,
    InvalidJob,
    InvalidSetting,
    InvalidStore,
    SparkConnect,
    SpeculationOn,
    UnknownColumn,
    UnserializableOperator,
    UnsupportedKeyType,
)
from elastic.numbers import as_whole
from elastic.operators import Stage
from elastic.operators.stages import runners_of
from elastic.results import Description, StageDescription
from elastic.runtime.access import StoreAccess
from storage import Store
from storage.errors import InvalidStorageInput
from storage.stores.keys import name_segment

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_LONGEST_NAME = 180  # as a segment of a key, in which a dot takes three characters


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidSetting(
            "name", name, "it must be letters, digits, '.', '_' and '-', at most 100, for it names files"
        )
    if len(name_segment(name)) > _LONGEST_NAME:
        raise InvalidSetting("name", name, "it has too many dots for a file name; use '-' or '_' instead")


def check_counts(tasks: int, nodes: int) -> tuple[int, int]:
    """Return both as Python's own numbers."""
    for name, value in (("tasks", tasks), ("nodes", nodes)):
        if (as_whole(value) or 0) < 1:
            raise InvalidSetting(name, value, "it must be a whole number from 1 on")
    if nodes > tasks:
        raise InvalidSetting("nodes", nodes, f"there are only {tasks} tasks, and a node without tasks has no work")
    return int(tasks), int(nodes)


def check_frame(frame: DataFrame) -> None:
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise SparkConnect
    if not isinstance(frame, DataFrame):
        raise InvalidJob(f"df is a {type(frame).__name__}, not a DataFrame. Make a stream with spark.readStream.")
    if not frame.isStreaming:
        raise InvalidJob("the DataFrame is not a stream. Make it with spark.readStream.")


def check_event_time(frame: DataFrame, column: str | None, watermark_delay: str | None) -> None:
    if column is None:
        if watermark_delay is not None:
            why = "a watermark follows event times, and event_time names no column for them"
            raise InvalidSetting("watermark_delay", watermark_delay, why)
        return
    if column not in frame.columns:
        raise UnknownColumn(column, frame.columns)
    kind = frame.schema[column].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType):
        raise InvalidEventTime(column, kind.simpleString())


def open_store(access: StoreAccess) -> Store:
    """Open the job's store; `InvalidStore` for a URL or settings that cannot be right."""
    if urlsplit(access.url).scheme == "memory":
        raise InvalidStore("memory: is in one process, and nodes run in others")
    try:
        return access.open()
    except InvalidStorageInput as cause:
        raise InvalidStore(str(cause)) from cause


def check_cluster(spark: SparkSession) -> None:
    """Refuse a configuration of Spark under which nodes cannot live."""
    conf = spark.sparkContext.getConf()
    if (conf.get("spark.speculation") or "false").lower() == "true":
        raise SpeculationOn


def is_local(master: str) -> bool:
    return master.startswith("local")


def describe(frame: DataFrame, stages: Sequence[Stage], tasks: int) -> Description:
    """The pipeline as it travels; refuses keys that have no hash and operators that cannot be sent to a node."""
    _refuse_collations(frame, stages[0].key)
    for stage in stages:
        check_operator(stage)
    runners = runners_of(stages, _arrow_schema(frame))
    described = tuple(
        StageDescription(stage.name, stage.key, stage.operator, runner.input_schema, runner.output_schema)
        for stage, runner in zip(stages, runners, strict=True)
    )
    version = " ".join(f"{stage.name}={stage.operator.version}" for stage in stages)
    return Description(described, tasks, version)


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    """The rows as Spark sends them to Python: times in the session's zone, and no metadata."""
    conf = frame.sparkSession.conf
    large = conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false") == "true"
    zone = conf.get("spark.sql.session.timeZone")
    return to_arrow_schema(frame.schema, timezone=zone, prefers_large_types=large).remove_metadata()


def _refuse_collations(frame: DataFrame, key: Sequence[str]) -> None:
    """Keys that are equal under a collation have different bytes, and so different hashes."""
    for field in frame.schema:
        collation = getattr(field.dataType, "collation", None)
        if field.name in key and collation not in (None, "UTF8_BINARY"):
            raise UnsupportedKeyType(field.name, f"a string with collation {collation}")


def check_operator(stage: Stage) -> None:
    try:
        cloudpickle.dumps(stage.operator)
    except Exception as cause:
        raise UnserializableOperator(stage.name, cause) from cause
