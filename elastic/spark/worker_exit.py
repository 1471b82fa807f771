"""Quiet exits of Python processes that PySpark starts.

Spark closes the connection to such a process when a task is cancelled, a query is stopped, or Spark itself stops. That
is a normal end, but PySpark then tries to report an error over the closed connection and prints a traceback.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

_RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"  # one process for each streaming query on a source
_DAEMON = "pyspark.daemon"  # forks the processes that plan; for these Spark ignores `spark.python.daemon.module`


def exit_quietly(worker: Callable[[Any, bool], int]) -> Callable[[Any, bool], int]:
    """Wrap a worker so that it exits without a traceback if Spark has closed its connection."""

    @wraps(worker)
    def work(sock: Any, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return work


def silence_planner() -> None:
    """Wrap the worker of PySpark's daemon if this process plans queries; do nothing in other processes."""
    main = sys.modules["__main__"]
    if _main_module() == _DAEMON:
        main.worker = exit_quietly(main.worker)  # type: ignore[attr-defined]


def exit_with_spark(error: BaseException | None) -> None:
    """Exit if this process is PySpark's runner and Spark has closed the connection to it."""
    if isinstance(error, EOFError | ConnectionError) and _main_module() == _RUNNER:
        os._exit(0)


def _main_module() -> str:
    """Return the name of the module that this process was started with."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return "" if spec is None else str(spec.name)
