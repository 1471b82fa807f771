"""The live page in a real browser, on a job that keeps counting on a real Spark."""

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
# Every migration in the chart has a label, and no two labels overlap.
NAMES_APART = """
const names = [...document.querySelectorAll("#response text.name")];
const places = names.map((name) => name.getBoundingClientRect());
const before = (a, b) => a < b - 1;  // pixels
const overlap = (a, b) => before(a.left, b.right) && before(b.left, a.right)
    && before(a.top, b.bottom) && before(b.top, a.bottom);
return places.length === 2 && !overlap(...places);
"""


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Iterator[elastic.SparkJob]:
    with start_slow_to_move(spark, tmp_path / "store") as job:
        yield job


@pytest.fixture
def page(browser: Chrome, job: elastic.SparkJob) -> Iterator[Page]:
    with elastic.api.serve(job) as server:
        yield Page(browser, server)


def test_a_job_on_spark_is_monitored_planned_and_scaled_on_its_page(
    page: Page, job: elastic.SparkJob, tmp_path: Path
) -> None:
    assert page.owners() == list(job.assignment().owners)
    assert page.text("state") == "running"
    assert page.text("journal") == "No records yet."
    page.until("both nodes at work", lambda: page.text("nodes").count(" %") == 2)
    page.until("Spark's triggers", lambda: page.run("return document.querySelector('#response path.trigger')"))

    page.open("How state moves")
    page.fill("tasks-per-node", "1")
    page.fill("count", "4")
    assert page.compare() == ["ssm", "even", "consistent-hash"]
    assert "joining node-3, node-4" in page.text("plans")
    assert job.migration is None

    page.carry_out("even", page.server.token)  # moves many, whatever the work that was measured
    page.until("tasks in flight", page.count_in_flight, _MIGRATION_SECONDS)
    page.save_screenshot(tmp_path / "moving.png")
    page.until("the end", lambda: page.text("phase") == "done", _MIGRATION_SECONDS)
    page.until("all tasks at their new nodes", lambda: page.owners() == list(job.assignment().owners))
    assert page.nodes() == {"node-1", "node-2", "node-3", "node-4"}
    assert page.count_in_flight() == 0
    page.until("two records", lambda: page.records() == 2)
    assert "2 → 4 nodes by even, progressive, store" in page.text("journal")
    assert "done after" in page.text("journal")
    page.until("a band in the chart", lambda: page.run("return document.querySelector('#response .band')"))
    page.open("Story")
    page.until("the story", lambda: "released tasks" in page.text("story"))

    page.choose("what", "remove")
    page.browser.find_element(By.CSS_SELECTOR, "input[name=remove][value=node-2]").click()
    page.compare()
    page.carry_out("ssm")
    page.until("the node gone", lambda: page.nodes() == {"node-1", "node-3", "node-4"}, _MIGRATION_SECONDS)
    page.until("the end", lambda: page.text("phase") == "done", _MIGRATION_SECONDS)
    page.until("four records", lambda: page.records() == 4)
    assert page.run(NAMES_APART)
    page.save_screenshot(tmp_path / "moved.png")

    job.stop()
    page.until("the end of the job", lambda: page.text("state") == "stopped")
    page.save_screenshot(tmp_path / "stopped.png")
    assert "starting" not in page.text("legend") + page.text("nodes")
    assert page.read_errors() == []
    assert_exact(job)
