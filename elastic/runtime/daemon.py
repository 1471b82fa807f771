"""Spark's Python daemon with everything that nodes and senders need imported before they are forked.

Named by `spark.python.daemon.module`. A node then starts in a fraction of the time, and the memory of libraries and
compiled loops is shared by all Python processes of an executor instead of being there once for each.

Only code is loaded here, no thread is started and no connection opened: a fork would inherit neither. That is why
PySpark itself imports Arrow after the fork, and why two libraries are told to start no threads.
"""

import gc
import os
from collections.abc import Callable
from functools import wraps
from typing import Any


def preload() -> None:
    """Import, compile and let the garbage collector never look at it again, which would unshare it."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    # Rows that come over a wire need not start at a multiple of 8; Arrow would warn of it at every grouping.
    os.environ.setdefault("ACERO_ALIGNMENT_HANDLING", "ignore")
    import pyspark.worker  # noqa: F401

    import elastic.runtime.intake.sender
    import elastic.runtime.node.entry  # noqa: F401
    from elastic.operators.columns.warm_up import load_kernels

    load_kernels()
    gc.collect()
    gc.freeze()


def ends_quietly(worker: Callable[[Any, bool], int]) -> Callable[[Any, bool], int]:
    """A worker that ends without a traceback when Spark has closed its connection.

    Spark does so when a task is cancelled and when it stops: a worker that has something to say then finds the pipe
    broken. That is a normal end, and PySpark would print a traceback for it.
    """

    @wraps(worker)
    def work(sock: Any, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return work


if __name__ == "__main__":
    import pyspark.daemon

    preload()
    pyspark.daemon.worker = ends_quietly(pyspark.daemon.worker)  # type: ignore[assignment]
    pyspark.daemon.manager()
