"""What a job gives out: the result log, the sinks that follow it, and the job's description for its readers.

Knows nothing of Spark: a node, the controller, a reader and a test use it alike.
"""

from elastic.results.description import Description, StageDescription, chosen_stage, result_schemas
from elastic.results.expiry import Expired
from elastic.results.follower import Follower
from elastic.results.log import ResultLog
from elastic.results.objects import BATCH, PLACE, SLOT, TASK
from elastic.results.parquet import ParquetSink
from elastic.results.refs import BatchIndex, ResultRef
from elastic.results.sinks import SINKS, MemorySink, NoSink, Sink, StoreSink, open_sink

__all__ = [
    "BATCH",
    "PLACE",
    "SINKS",
    "SLOT",
    "TASK",
    "BatchIndex",
    "Description",
    "Expired",
    "Follower",
    "MemorySink",
    "NoSink",
    "ParquetSink",
    "ResultLog",
    "ResultRef",
    "Sink",
    "StageDescription",
    "StoreSink",
    "chosen_stage",
    "open_sink",
    "result_schemas",
]
