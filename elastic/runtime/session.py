"""Spark sessions that suit jobs: a local one with room for nodes, or one on a cluster."""

import os
import signal
import sys
import threading
from collections.abc import Mapping

from pyspark.sql import SparkSession

from elastic.errors import ExposedSecret

# Spark's own default writes checkpoints through a slow path; this one is as safe on a local disk and 60 ms faster.
_CHECKPOINT_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_SENDERS = 4  # task slots beside the nodes
_ALWAYS = {
    "spark.python.daemon.module": "elastic.runtime.daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.showConsoleProgress": "false",  # nodes are jobs that never end: a bar for them would never go away
}


def local_session(
    nodes: int = 4, *, spare_nodes: int = 4, conf: Mapping[str, str] | None = None, **options: str
) -> SparkSession:
    """Spark inside this process, on loopback only, with slots for `nodes` and `spare_nodes` to scale out to.

    `conf` is Spark's configuration by its keys; `options` are the same with underscores for dots:
    `spark_sql_shuffle_partitions="2"`.
    """
    # Spark starts its Python processes by this name; without it they would be another Python than this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    loopback = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_FILES,
    }
    return _session(f"local[{nodes + spare_nodes + _SENDERS}]", {**loopback, **(conf or {}), **_dotted(options)})


def cluster_session(master: str, *, conf: Mapping[str, str] | None = None, **options: str) -> SparkSession:
    """Spark at `master`; nodes find a warm Python there, if the executors have this package."""
    return _session(master, {**(conf or {}), **_dotted(options)})


def _dotted(options: Mapping[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in options.items()}


def _session(master: str, conf: Mapping[str, str]) -> SparkSession:
    if "spark.elastic.secret" in conf:
        # PySpark starts the JVM with all of this on its command line.
        raise ExposedSecret("Spark's configuration", "spark.elastic.secret", "Set ELASTIC_SECRET instead.")
    builder = SparkSession.builder.master(master).appName("spark-elastic")
    for name, value in {**_ALWAYS, **conf}.items():
        builder = builder.config(name, value)
    interrupted = signal.getsignal(signal.SIGINT)
    session = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        # On Ctrl-C PySpark would cancel all of its jobs, and nodes are jobs: they end by `Job.stop`, in peace.
        signal.signal(signal.SIGINT, interrupted)
    return session
