"""Plans are made on the driver and inside Spark tasks alike."""

import pytest
from pyspark.sql import SparkSession

from migration import Assignment, Plan, plan
from tests.migration.instances import skewed_workload

pytestmark = pytest.mark.spark


def test_a_plan_made_in_a_spark_task_is_the_plan_made_on_the_driver(spark: SparkSession) -> None:
    workload, current = skewed_workload(64, 1), Assignment.even(64, 8)
    counts = list(range(4, 17))
    there = spark.sparkContext.parallelize(counts, 2).map(lambda n: plan(current, n, workload, relax=True)).collect()
    here = [plan(current, n, workload, relax=True) for n in counts]
    assert there == here
    assert all(isinstance(made, Plan) for made in there)
