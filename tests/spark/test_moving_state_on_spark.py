"""State that comes from a DataFrame or from another job, and an operator of a newer version, on Spark."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import elastic
from elastic import errors
from elastic.operators import CountByKey
from tests.spark.jobs import Feed, start

pytestmark = pytest.mark.spark
SECRET = "a secret of these tests"  # noqa: S105 - of tests only


class Doubled(CountByKey):
    """Counts double in its second version."""

    name = "CountByKey"
    version = "2"

    def upgrade(self, old_version: str, value: Any) -> Any:
        assert old_version == "1"
        column = value.column("count")
        column *= 2
        return value


def test_a_job_begins_with_a_dataframe_is_upgraded_exported_and_imported(spark: SparkSession, tmp_path: Path) -> None:
    feed, store = Feed(spark, tmp_path / "feed"), tmp_path / "store"
    initial = spark.createDataFrame([("a", 10), ("z", 5)], "key string, count long")
    with pytest.raises(errors.InvalidJob, match="initial_state is a stream"):
        start(feed.frame(), store, initial_state=feed.frame(), secret=SECRET)
    feed.send_keys("a", "b")
    with start(feed.frame(), store, initial_state=initial, secret=SECRET) as job:
        job.process_all_available()
        assert [job.state(key) for key in "abz"] == [11, 1, 5]
    feed.send_keys("a")
    with start(feed.frame(), store, operator=Doubled(), secret=SECRET) as job:
        job.process_all_available()
        assert [job.state(key) for key in "abz"] == [23, 2, 10]
    exported = elastic.export_state("counts", tmp_path / "export", store=store.as_uri(), secret=SECRET)
    assert exported.rows == {"CountByKey": 3}
    elastic.import_state(tmp_path / "export", name="copy", store=store.as_uri(), tasks=5, secret=SECRET)
    elastic.resign("copy", store=store.as_uri(), old_secret=SECRET, new_secret=SECRET * 2)
    other = Feed(spark, tmp_path / "other")
    other.send_keys("b")
    with start(other.frame(), store, name="copy", operator=Doubled(), tasks=5, nodes=1, secret=SECRET * 2) as job:
        job.process_all_available()
        assert [job.state(key) for key in "abz"] == [23, 3, 10]
        rows = spark.read.format("elastic-state").options(store=store.as_uri(), name="copy").load().collect()
        assert {row["key"] for row in rows} <= set("abz")


def test_the_snapshot_of_a_job_that_is_being_upgraded_can_be_queried(spark: SparkSession, tmp_path: Path) -> None:
    feed, store = Feed(spark, tmp_path / "feed"), tmp_path / "store"
    feed.send_keys("a", "a")
    with start(feed.frame(), store) as job:
        job.process_all_available()
    job = start(feed.frame(), store, operator=Doubled())
    job.stop(drain=False)  # has saved nothing
    rows = spark.read.format("elastic-state").options(store=store.as_uri(), name="counts").load().collect()
    assert {row["key"]: row["count"] for row in rows} == {"a": 4}
