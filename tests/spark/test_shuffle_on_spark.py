"""Shuffled rows on a real Spark: senders in Python workers choose by what nodes measured; every row is done once."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from elastic.operators import Stage, stateless
from tests.spark.jobs import Feed, start

pytestmark = pytest.mark.spark

KEYS = ["slow"] * 20 + [f"fast-{number}" for number in range(80)]


def work(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    time.sleep(sum(0.01 if row["key"] == "slow" else 0.0001 for row in rows))
    return [{"key": row["key"]} for row in rows]


def test_shuffled_rows_are_done_once_through_a_scale(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "input")
    stage = Stage(
        stateless(work, "key string", input_format="rows"),
        name="work",
        grouping="shuffle",
        scheduler="posg-batch",
        cost_key="key",
    )
    with start(feed.frame(), tmp_path / "store", operator=stage) as job:
        feed.send_keys(*KEYS)
        job.process_all_available()
        deadline = time.monotonic() + 20
        while not job._driver.view.costs():
            assert time.monotonic() < deadline, "no node has reported costs"
            time.sleep(0.05)
        feed.send_keys(*KEYS)
        job.process_all_available()
        assert job._driver.view.work_ends  # senders expected something
        assert job.scale(1).wait(60)
        feed.send_keys(*KEYS)
        job.process_all_available()
        found = Counter((row["_batch"], row["key"]) for row in job.collected().to_pylist())
    assert found == Counter({(batch, key): rows for batch in range(3) for key, rows in Counter(KEYS).items()})
