"""How processes that PySpark starts for a data source end when Spark closes their connections: in silence."""

import os
import sys

from elastic.runtime.daemon import ends_quietly

_RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"  # a process for each query
_DAEMON = "pyspark.daemon"  # forks the processes that plan; for these Spark does not use the daemon that is configured


def quiet_planners() -> None:
    """In a process that plans, wrap the worker of PySpark's daemon; elsewhere do nothing."""
    main = sys.modules["__main__"]
    if _program() == _DAEMON:
        main.worker = ends_quietly(main.worker)  # type: ignore[attr-defined]


def end_with_spark(error: BaseException | None) -> None:
    """End the process of PySpark's runner if Spark has closed the connection to it.

    The query was stopped, or Spark: a normal end. PySpark would report it over the closed connection, and print a
    traceback because that fails.
    """
    if isinstance(error, EOFError | ConnectionError) and _program() == _RUNNER:
        os._exit(0)


def _program() -> str:
    """The module that this process was started with."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return "" if spec is None else str(spec.name)
