"""Operators, their state and their timers, independent of Spark.

Write an `Operator` (batches), a `KeyedOperator` (key by key) or a `stateless` function, and test it with
`elastic.operators.testing.OperatorTester` without a cluster.
"""

from elastic.operators.aggregates.aggregate import Aggregate
from elastic.operators.columns import KeyedColumns
from elastic.operators.context import Context
from elastic.operators.deduplicate import DropDuplicates, drop_duplicates_within_watermark
from elastic.operators.destinations import ToNext, ToSelf, ToSink
from elastic.operators.joins import Enrich, IntervalJoin, Side, WindowJoin
from elastic.operators.keyed import KeyedOperator, ValueState
from elastic.operators.late_rows import with_late_rows
from elastic.operators.library import CountByKey
from elastic.operators.operator import Operator, State
from elastic.operators.schemas import to_schema
from elastic.operators.stages import Stage, partial
from elastic.operators.stateless import StatelessOperator, stateless
from elastic.operators.timers import Timer
from elastic.operators.top_k import TopK
from elastic.operators.windows import session_window, window

__all__ = [
    "Aggregate",
    "Context",
    "CountByKey",
    "DropDuplicates",
    "Enrich",
    "IntervalJoin",
    "KeyedColumns",
    "KeyedOperator",
    "Operator",
    "Side",
    "Stage",
    "State",
    "StatelessOperator",
    "Timer",
    "ToNext",
    "ToSelf",
    "ToSink",
    "TopK",
    "ValueState",
    "WindowJoin",
    "drop_duplicates_within_watermark",
    "partial",
    "session_window",
    "stateless",
    "to_schema",
    "window",
    "with_late_rows",
]
