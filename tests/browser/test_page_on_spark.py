"""The live page in a real browser, on a job on a real Spark that goes on counting all the while."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

import elastic
import elastic.api
from tests.browser.page import Page
from tests.spark.jobs import assert_exact, start_slow_to_move

pytestmark = [pytest.mark.browser, pytest.mark.spark]

_MIGRATION_SECONDS = 60.0
# Of the migrations in the chart: each has a name, and no name covers another one.
NAMES_APART = """
const names = [...document.querySelectorAll("#response text.name")];
const places = names.map((name) => name.getBoundingClientRect());
const before = (a, b) => a < b - 1;  // pixels
const overlap = (a, b) => before(a.left, b.right) && before(b.left, a.right)
    && before(a.top, b.bottom) && before(b.top, a.bottom);
return places.length === 2 && !overlap(...places);
"""


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Iterator[elastic.Job]:
    with start_slow_to_move(spark, tmp_path / "store") as job:
        yield job


@pytest.fixture
def page(browser: Chrome, job: elastic.Job) -> Iterator[Page]:
    with elastic.api.serve(job) as server:
        yield Page(browser, server)


def test_a_job_on_spark_is_looked_at_planned_and_scaled_on_its_page(
    page: Page, job: elastic.Job, tmp_path: Path
) -> None:
    assert page.owners() == list(job.assignment().owners)
    assert page.text("state") == "running"
    assert page.text("journal") == "Nothing has been decided yet."
    page.until("both nodes at work", lambda: page.text("nodes").count(" %") == 2)
    page.until("Spark's triggers", lambda: page.run("return document.querySelector('#response path.trigger')"))

    page.open("How state moves")
    page.fill("tasks-per-node", "1")
    page.fill("count", "4")
    assert page.compare() == ["ssm", "even", "consistent-hash"]
    assert "joining node-3, node-4" in page.text("plans")
    assert job.migration is None

    page.go("even", page.server.token)  # moves many, whatever the work that was measured
    page.until("tasks on their way", page.flying, _MIGRATION_SECONDS)
    page.picture(tmp_path / "moving.png")
    page.until("the end", lambda: page.text("phase") == "done", _MIGRATION_SECONDS)
    page.until("all tasks at their new nodes", lambda: page.owners() == list(job.assignment().owners))
    assert page.nodes() == {"node-1", "node-2", "node-3", "node-4"}
    assert page.flying() == 0
    page.until("two records", lambda: page.records() == 2)
    assert "2 → 4 nodes by even, progressive, store" in page.text("journal")
    assert "done after" in page.text("journal")
    page.until("a band in the chart", lambda: page.run("return document.querySelector('#response .band')"))
    page.open("Story")
    page.until("the story", lambda: "StateReleased" in page.text("story"))

    page.choose("what", "remove")
    page.browser.find_element(By.CSS_SELECTOR, "input[name=remove][value=node-2]").click()
    page.compare()
    page.go("ssm")
    page.until("the node gone", lambda: page.nodes() == {"node-1", "node-3", "node-4"}, _MIGRATION_SECONDS)
    page.until("the end", lambda: page.text("phase") == "done", _MIGRATION_SECONDS)
    page.until("four records", lambda: page.records() == 4)
    assert page.run(NAMES_APART)
    page.picture(tmp_path / "moved.png")

    job.stop()
    page.until("the end of the job", lambda: page.text("state") == "stopped")
    page.picture(tmp_path / "stopped.png")
    assert "starting" not in page.text("legend") + page.text("nodes")
    assert page.complaints() == []
    assert_exact(job)
