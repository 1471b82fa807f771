"""Spark sessions configured for elastic jobs, local or on a cluster."""

import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from elastic.errors import ExposedSecret

# As safe on a local disk as Spark's default, and about 60 ms faster per batch.
_CHECKPOINT_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_STREAM_LOGGER = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"
_SENDER_SLOTS = 4  # in addition to the nodes'
_COMMON_CONF = {
    "spark.python.daemon.module": "elastic.spark.daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.showConsoleProgress": "false",  # nodes are Spark jobs that never end, and neither would their bars
}


def local_session(
    nodes: int = 4, *, spare_nodes: int = 4, conf: Mapping[str, str] | None = None, **options: str
) -> SparkSession:
    """Return a Spark session in this process, bound to loopback, with task slots for `nodes` and `spare_nodes` more.

    `conf` is Spark configuration by key; `options` are the same with underscores for dots:
    `spark_sql_shuffle_partitions="2"`.
    """
    # Spark's Python workers must run the same Python as this process.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    loopback = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_FILES,
    }
    return _get_session(
        f"local[{nodes + spare_nodes + _SENDER_SLOTS}]", {**loopback, **(conf or {}), **_to_conf_keys(options)}
    )


def cluster_session(master: str, *, conf: Mapping[str, str] | None = None, **options: str) -> SparkSession:
    """Return a Spark session at `master`; its executors need this package, and fork nodes from a preloaded daemon."""
    return _get_session(master, {**(conf or {}), **_to_conf_keys(options)})


def quiet_log(spark: SparkSession) -> None:
    """Let Spark log errors only, and none of streams: the engine says why one ends, and a stop is no error.

    A stop refuses the batch that waits to be ingested, which Spark would log with the stacks of the JVM and of Python.
    """
    spark.sparkContext.setLogLevel("ERROR")
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark cannot set the level of one logger
    log4j = jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(_STREAM_LOGGER, log4j.Level.OFF)


def _to_conf_keys(options: Mapping[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in options.items()}


def _get_session(master: str, conf: Mapping[str, str]) -> SparkSession:
    if "spark.elastic.secret" in conf:
        # PySpark passes all of it to the JVM on a command line that other users can read.
        raise ExposedSecret("Spark's configuration", "spark.elastic.secret", "Set ELASTIC_SECRET instead.")
    builder = SparkSession.builder.master(master).appName("spark-elastic")
    for name, value in {**_COMMON_CONF, **conf}.items():
        builder = builder.config(name, value)
    previous = signal.getsignal(signal.SIGINT)
    session = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        # PySpark's handler of Ctrl-C cancels all Spark jobs and with them the nodes, which `Job.stop` ends gracefully.
        signal.signal(signal.SIGINT, previous)
    return session
