"""Frequent patterns on a real Spark: those of the miner after every batch, while the job scales and nodes die."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from elastic.errors import IncompatibleRestart
from examples.frequent_patterns.audit import Audit
from examples.frequent_patterns.audited_job import AuditedJob
from examples.frequent_patterns.board import Board
from examples.frequent_patterns.disturbances import Disturbances, Schedule
from examples.frequent_patterns.job import patterns_job
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.pipeline import DETECTOR, REPORTER
from examples.frequent_patterns.texts import GeneratedTexts
from tests.spark.jobs import Feed

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
SECONDS = 120.0  # more than enough on a machine that has much else to do


@pytest.mark.long  # the demo shows the same by default, see test_examples_on_spark.py
def test_patterns_are_exact_in_every_batch_while_the_detector_scales_and_nodes_are_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    audit = Audit(GeneratedTexts(5), 60, Mining(threshold=5, window="5 batches"))
    store, every = (tmp_path / "store").as_uri(), "100 milliseconds"
    with AuditedJob(spark, audit, store, nodes=2, tasks=16, every=every, snapshot_seconds=2.0) as audited:
        disturbances = Disturbances(audited.job, Schedule((0.0, 5.0), (0.0, 7.0)), seed=5, max_nodes=4)
        assert audited.wait_for(6, SECONDS)
        began = time.monotonic()
        while not disturbances.is_over and time.monotonic() < began + SECONDS:
            audited.check_for(0.1)
            disturbances.advance(time.monotonic() - began)
        assert disturbances.is_over
        assert audited.wait_for(audit.batches + 6, SECONDS)
    audited.finish()
    assert audit.wrong == []
    assert disturbances.kills[0].while_migrating
    assert audited.job.status().losses >= 2
    assert audit.max_patterns > 20


def test_any_texts_with_a_time_are_mined_and_only_the_same_question_resumes_after_a_stop(
    spark: SparkSession, tmp_path: Path
) -> None:
    feed, store = Feed(spark, tmp_path / "input"), (tmp_path / "store").as_uri()
    frame = feed.frame("said string, at timestamp")
    mining = Mining(threshold=2, window="1 minute")
    how: dict[str, Any] = {"store": store, "nodes": 2, "tasks": 8, "text": "said", "time": "at"}

    def say(minute: int, *texts: str | None) -> None:
        feed.send(*({"said": text, "at": f"2015-02-16T23:{minute:02d}:00Z"} for text in texts))

    board = Board()
    with patterns_job(frame, mining=mining, sink=board, **how) as job:
        say(1, "Apache Storm!", "the apache storm", None, "storm")
        job.process_all_available()
        assert board.last.patterns == {"apache storm": 2}
        assert job.state("storm", DETECTOR) == {"texts": 3, "covers": 1, "frequent": True}
        assert job.state("apache storm", REPORTER) == {"texts": 2}
    with pytest.raises(IncompatibleRestart):
        patterns_job(frame, mining=Mining(threshold=3, window="1 minute"), **how)
    board = Board()
    with patterns_job(frame, mining=mining, sink=board, **how) as job:
        say(2, "spark storm", "spark")
        job.process_all_available()
        say(2, "nothing much")
        job.process_all_available()
        assert board.last.patterns == {"spark": 2}


@pytest.mark.long
def test_the_example_shows_the_patterns_of_a_file(tmp_path: Path) -> None:
    texts = tmp_path / "texts.csv"
    texts.write_text("created_at,text\n2015-02-16,apache storm\n2015-02-17,apache storm and spark\n")
    options = ["--texts", str(texts), "--threshold", "4", "--rate", "4", "--batches", "2", "--nodes", "1", "--window"]
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "examples.frequent_patterns", *options, "1 batch"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert ended.stdout.splitlines()[:2] == [
        "batch 0: 1 maximal frequent patterns (1 appeared, 0 vanished)",
        "       4  apache storm",
    ]


@pytest.mark.long
def test_a_campaign_ends_by_itself_and_says_that_all_batches_were_exact() -> None:
    options = ["--minutes", "0.2", "--migrations", "1", "--kills", "1", "--rate", "50", "--threshold", "4"]
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "examples.frequent_patterns.campaign", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "exact" in ended.stdout
