"""A local Spark session with room for nodes, for examples, tests and first steps."""

import os
import sys

from pyspark.sql import SparkSession

# Spark's own default writes checkpoints through a slow path; this one is as safe on a local disk and 60 ms faster.
_CHECKPOINT_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_SENDERS = 4  # task slots beside the nodes


def local_session(nodes: int = 4, *, spare_nodes: int = 4, **options: str) -> SparkSession:
    """Spark inside this process, on loopback only, with slots for `nodes` and `spare_nodes` to scale out to.

    `options` are Spark's own, with underscores for dots: `spark_sql_shuffle_partitions="2"`.
    """
    # Spark starts its Python processes by this name; without it they would be another Python than this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{nodes + spare_nodes + _SENDERS}]").appName("spark-elastic")
    defaults = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_FILES,
        "spark.python.daemon.module": "elastic.runtime.daemon",
        "spark.python.unix.domain.socket.enabled": "true",
    }
    for name, value in {**defaults, **{key.replace("_", "."): value for key, value in options.items()}}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
