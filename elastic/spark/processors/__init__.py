"""PySpark's own `StatefulProcessor` classes as operators of the engine."""

from elastic.spark.processors.operator import ProcessorOperator
from elastic.spark.processors.testing import ProcessorTester

__all__ = ["ProcessorOperator", "ProcessorTester"]
