"""Elastic stateful operators on Spark: the engine and its front doors.

`elastic.run` needs Spark; everything else here can be imported, and operators can be tested, without it.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elastic.runtime.job import Job
    from elastic.runtime.run import run
    from elastic.runtime.session import local_session

__version__ = version("spark-elastic")

# Imported when they are first used: they bring Spark with them.
_LAZY = {"run": "elastic.runtime.run", "Job": "elastic.runtime.job", "local_session": "elastic.runtime.session"}

__all__ = ["Job", "__version__", "local_session", "run"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'elastic' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
