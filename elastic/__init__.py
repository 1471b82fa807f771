"""Elastic stateful operators on Spark.

Importing this package imports neither Spark nor NumPy: every name imports what it needs when it is first used.
`local_run` and the operators need no Spark.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elastic.job.job import Job
    from elastic.local.run import local_run
    from elastic.operators.graph import Input
    from elastic.portable import export_state, import_state, resign
    from elastic.spark.job import SparkJob
    from elastic.spark.processors import ProcessorOperator, ProcessorTester
    from elastic.spark.processors.run import transform_with_state
    from elastic.spark.run import run
    from elastic.spark.session import cluster_session, local_session
    from elastic.spark.sources import register_sources

__version__ = version("spark-elastic")

_MODULES = {
    "Input": "elastic.operators.graph",
    "Job": "elastic.job.job",
    "ProcessorOperator": "elastic.spark.processors",
    "ProcessorTester": "elastic.spark.processors",
    "SparkJob": "elastic.spark.job",
    "cluster_session": "elastic.spark.session",
    "export_state": "elastic.portable",
    "import_state": "elastic.portable",
    "local_run": "elastic.local.run",
    "local_session": "elastic.spark.session",
    "register_sources": "elastic.spark.sources",
    "resign": "elastic.portable",
    "run": "elastic.spark.run",
    "transform_with_state": "elastic.spark.processors.run",
}

__all__ = [
    "Input",
    "Job",
    "ProcessorOperator",
    "ProcessorTester",
    "SparkJob",
    "__version__",
    "cluster_session",
    "export_state",
    "import_state",
    "local_run",
    "local_session",
    "register_sources",
    "resign",
    "run",
    "transform_with_state",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'elastic' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
