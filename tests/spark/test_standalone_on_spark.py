"""A real standalone cluster, started from the Spark that pip installed: a master and a worker on loopback."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

pytestmark = pytest.mark.spark

HOME = Path(pyspark.__file__).parent
DRIVER = """
import os
import sys
import elastic
from elastic.operators import CountByKey
from pyspark.sql import SparkSession

master, store, daemon = sys.argv[1:]
builder = SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.ui.enabled", "false")
spark = builder.config("spark.python.daemon.module", daemon).config("spark.cores.max", "4")
spark = spark.config("spark.executor.extraJavaOptions", os.environ["SPARK_SUBMIT_OPTS"]).getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).load().selectExpr("value % 10 AS key")
with elastic.run(rows, key="key", operator=CountByKey(), name="cluster", nodes=2, tasks=8, store=store) as job:
    while job.status().published_batch < 2:
        job.await_termination(0.2)
status = job.status()
counts = {row["key"]: row["count"] for row in job.state_table().collect()}
print("counts", counts == {key: 100 * (status.last_batch + 1) for key in range(10)}, "losses", status.losses)
"""


@contextmanager
def run_process(log: Path, *arguments: str) -> Iterator[None]:
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": os.environ["SPARK_SUBMIT_OPTS"],
        "PYSPARK_PYTHON": sys.executable,
    }
    with log.open("w") as output:
        process = subprocess.Popen(  # noqa: S603
            [str(HOME / "bin" / "spark-class"), *arguments], stdout=output, stderr=output, env=environment
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def wait_for_line(log: Path, pattern: str) -> str:
    for _ in range(300):
        if match := re.search(pattern, log.read_text()):
            return match[0]
        time.sleep(0.2)
    raise AssertionError(f"{pattern} never came:\n{log.read_text()[-2000:]}")


def test_a_job_runs_on_a_standalone_cluster(tmp_path: Path) -> None:
    master_log, worker_log = tmp_path / "master.log", tmp_path / "worker.log"
    deploy = "org.apache.spark.deploy"
    with run_process(master_log, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"):
        master = wait_for_line(master_log, r"spark://127\.0\.0\.1:\d+")
        worker = (
            "--host",
            "127.0.0.1",
            "--webui-port",
            "0",
            "--cores",
            "4",
            "--memory",
            "1g",
            "--work-dir",
            str(tmp_path),
        )
        with run_process(worker_log, f"{deploy}.worker.Worker", *worker, master):
            wait_for_line(worker_log, "Successfully registered with master")
            driver = [sys.executable, "-c", DRIVER, master, (tmp_path / "store").as_uri(), "elastic.spark.daemon"]
            ended = subprocess.run(driver, capture_output=True, text=True, timeout=240, check=False)  # noqa: S603
    assert ended.stdout.splitlines()[-1:] == ["counts True losses 0"], ended.stderr[-3000:]
