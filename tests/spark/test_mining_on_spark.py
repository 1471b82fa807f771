"""An application of paper 001 on a real Spark: its answer is right while the job scales."""

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.mining.naive_bayes import run_naive_bayes
from examples.mining.run import Size
from examples.mining.spark_run import start_on_spark

pytestmark = pytest.mark.spark


def test_a_model_of_split_counts_is_right_while_the_job_scales(spark: SparkSession, tmp_path: Path) -> None:
    report = run_naive_bayes(Size(batches=3, rows=400), partial(start_on_spark, spark, tmp_path))
    assert report.difference is None
    assert report.figures["examples"] == "120"
