"""Split keys on a real Spark: senders in Python workers choose, nodes hold partials, and results are exact."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from elastic.operators import CountByKey, Stage, partial
from tests.spark.jobs import Feed, start

pytestmark = pytest.mark.spark

KEYS = ["hot"] * 60 + [f"cold-{number}" for number in range(20)]


def test_split_keys_are_counted_exactly_through_a_scale_and_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "input")
    stages = partial(Stage(CountByKey(), name="counts"))
    with start(feed.frame(), tmp_path / "store", operator=stages) as job:
        feed.send_keys(*KEYS)
        job.process_all_available()
        assert job.scale(1).wait(60)
        feed.send_keys(*KEYS)
        job.process_all_available()
        assert job.scale(2).wait(60)
        feed.send_keys(*KEYS)
        job.process_all_available()
        found = Counter((row["_batch"], row["key"], row["count"]) for row in job.collected().to_pylist())
        assert (job.state("hot"), job.state("cold-7", fresh=True)) == (180, 3)
    each = Counter(KEYS)
    assert found == Counter((batch, key, (batch + 1) * rows) for batch in range(3) for key, rows in each.items())
    held = partial(Stage(CountByKey(), name="counts"), every="1 hour")
    with start(feed.frame(), tmp_path / "store", operator=held) as again:
        feed.send_keys(*KEYS)
        again.process_all_available()
        assert (again.state("hot"), again.state("hot", fresh=True)) == (180, 240)
        again.snapshot()
        assert {row["key"]: row["count"] for row in again.state_table("counts").collect()}["hot"] == 180
        assert sum(row["count"] for row in again.state_table("partial-counts").collect()) == len(KEYS)
