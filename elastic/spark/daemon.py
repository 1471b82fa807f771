"""Spark's Python daemon, which imports everything that nodes and senders need before it forks them.

Named by `spark.python.daemon.module`. A node then starts in a fraction of the time, and all Python processes of an
executor share the memory of libraries and compiled loops.

The daemon only loads code. It starts no threads and opens no connections, because a fork inherits neither. For the same
reason PySpark imports Arrow after the fork, and two libraries are configured here to start no threads.
"""

import gc
import os
import sys
from zipimport import zipimporter

from elastic.spark.worker_exit import exit_quietly


def preload() -> None:
    """Import and compile, then freeze the garbage collector: a collection in a worker would unshare the memory."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    # Rows from the network need not be aligned to 8 bytes; without this Arrow warns about it at every grouping.
    os.environ.setdefault("ACERO_ALIGNMENT_HANDLING", "ignore")
    import pyspark.worker  # noqa: F401

    import elastic.spark.node_entry
    import elastic.spark.sender  # noqa: F401
    from elastic.operators.columns import load_kernels

    load_kernels()
    forget_archive_finders()
    gc.collect()
    gc.freeze()


def forget_archive_finders() -> None:
    """Forget the finders of zip archives, which Python makes anew from the directories that it has read.

    PySpark invalidates them in every worker that starts, and each then reads the directory of its archive again: two
    thirds of the processor time of a start.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


if __name__ == "__main__":
    import pyspark.daemon

    preload()
    pyspark.daemon.worker = exit_quietly(pyspark.daemon.worker)  # type: ignore[assignment]
    pyspark.daemon.manager()
