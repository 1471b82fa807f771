"""The results of a job: the result log, the sinks fed from it, and the job's description for readers.

Independent of Spark: nodes, the driver, readers and tests use it alike.
"""

from elastic.results.delta import DeltaSink
from elastic.results.description import Description, StageDescription, choose_stage, read_result_schemas
from elastic.results.expiry import ExpiredResults
from elastic.results.iceberg import IcebergSink
from elastic.results.kafka import KafkaSink
from elastic.results.log import ResultLog
from elastic.results.objects import BATCH, ORIGIN, TASK, UNIT
from elastic.results.parquet import ParquetSink
from elastic.results.refs import BatchIndex, ResultRef
from elastic.results.sink_writer import SinkWriter
from elastic.results.sinks import SINKS, MemorySink, NoSink, Sink, StoreSink, open_sink

__all__ = [
    "BATCH",
    "ORIGIN",
    "SINKS",
    "TASK",
    "UNIT",
    "BatchIndex",
    "DeltaSink",
    "Description",
    "ExpiredResults",
    "IcebergSink",
    "KafkaSink",
    "MemorySink",
    "NoSink",
    "ParquetSink",
    "ResultLog",
    "ResultRef",
    "Sink",
    "SinkWriter",
    "StageDescription",
    "StoreSink",
    "choose_stage",
    "open_sink",
    "read_result_schemas",
]
