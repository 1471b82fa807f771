"""What a user writes, and how it runs: operators, their state, their timers. Nothing here knows Spark.

Write an `Operator` (batches), a `KeyedOperator` (key by key) or a `stateless` function, and try it out in
`elastic.operators.testing.OperatorTester` without a cluster.
"""

from elastic.operators.columns import KeyedColumns
from elastic.operators.context import Context
from elastic.operators.destinations import ToNext, ToSelf, ToSink
from elastic.operators.keyed import KeyedOperator, ValueState
from elastic.operators.library import CountByKey
from elastic.operators.moment import Moment
from elastic.operators.operator import Operator, State
from elastic.operators.schemas import schema_of
from elastic.operators.stages import Stage
from elastic.operators.stateless import StatelessOperator, stateless
from elastic.operators.timers import Timer

__all__ = [
    "Context",
    "CountByKey",
    "KeyedColumns",
    "KeyedOperator",
    "Moment",
    "Operator",
    "Stage",
    "State",
    "StatelessOperator",
    "Timer",
    "ToNext",
    "ToSelf",
    "ToSink",
    "ValueState",
    "schema_of",
    "stateless",
]
