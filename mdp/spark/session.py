"""A Spark session for a job of this package."""

import os
import sys

from pyspark.sql import SparkSession

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "16",  # Spark's 200 are for a cluster; on one machine they take seconds to start
}


def get_session(name: str, master: str | None = None) -> SparkSession:
    """The active session, or a new one at `master`; without one `spark-submit` decides.

    A local session binds to loopback only, logs errors only, and has no UI.
    """
    # Spark starts its Python processes with this interpreter; without it they may be another Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    if master is None or not master.startswith("local"):
        return builder.getOrCreate()
    for setting, value in _LOCAL.items():
        builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
