"""The live page in a real browser, on a job of paper: everything that a reader can do there."""

import re
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

import elastic.api
from elastic.api.server import Server
from tests.browser.page import Page
from tests.elastic.api.paper_job import PaperJob

pytestmark = pytest.mark.browser


@pytest.fixture
def job() -> PaperJob:
    return PaperJob(tasks=16, nodes=4)


@pytest.fixture
def server(job: PaperJob) -> Iterator[Server]:
    with elastic.api.serve([job, PaperJob("clicks", tasks=8, nodes=2)]) as server:
        yield server


@pytest.fixture
def page(browser: Chrome, server: Server) -> Iterator[Page]:
    page = Page(browser, server)
    yield page
    assert page.complaints() == []


def scale_to(page: Page, nodes: int, token: str | None) -> None:
    page.fill("count", str(nodes))
    page.compare()
    page.go("ssm", token)


def test_the_page_shows_every_task_node_figure_and_batch(page: Page, job: PaperJob) -> None:
    assert page.owners() == list(job.assignment().owners)
    assert re.findall(r"node-\d · \d", page.text("legend")) == [f"node-{number} · 4" for number in (1, 2, 3, 4)]
    rows = page.until("bars", lambda: page.browser.find_elements(By.CSS_SELECTOR, "#nodes .bar.work .fill"))
    assert len(rows) == 4
    assert page.text("cap").endswith("carries.")
    assert page.text("state") == "running"
    page.until("a chart of response times", lambda: page.run("return document.querySelector('#response path.trigger')"))
    assert "rows a second" in page.text("figures")
    assert page.text("journal") == "Nothing has been decided yet."
    assert page.text("migration").startswith("None yet")


def test_another_job_can_be_chosen(page: Page) -> None:
    page.choose("job", "clicks")
    page.until("the tasks of the other job", lambda: len(page.cells()) == 8 and page.nodes() == {"node-1", "node-2"})


def test_plans_of_several_strategies_are_compared_and_nothing_changes(page: Page, job: PaperJob) -> None:
    page.element("more").click()
    page.element("more").click()
    page.element("fewer").click()
    assert page.element("count").get_attribute("value") == "6"
    assert page.compare() == ["ssm", "even", "consistent-hash"]
    told = page.text("plans")
    assert "joining node-5, node-6" in told
    assert "of all state" in told
    assert job.migration is None


def test_a_job_is_scaled_with_a_button_and_tasks_are_seen_on_their_way(page: Page, job: PaperJob) -> None:
    job.cluster.go.clear()
    scale_to(page, 6, page.server.token)
    page.until("tasks on their way", page.flying)
    assert page.text("phase") == "moving"
    assert "moving" in {cell["state"] for cell in page.cells()}
    assert re.search(r"tasks0 of \d+", page.text("migration"))
    job.cluster.go.set()
    page.until("the end", lambda: page.text("phase") == "done")
    page.until("all tasks at their new nodes", lambda: page.owners() == list(job.assignment().owners))
    assert page.flying() == 0
    assert len(page.nodes()) == 6
    assert page.text("plans") == ""
    page.until("two records", lambda: page.records() == 2)
    assert "done after" in page.text("journal")
    page.until("a band in the chart", lambda: page.run("return document.querySelector('#response .band')"))


def test_the_token_is_asked_for_once_and_a_wrong_one_again(page: Page, job: PaperJob) -> None:
    scale_to(page, 5, "not-the-token-at-all")
    page.until("another question", lambda: page.element("token-wrong").is_displayed())
    assert job.migration is None
    page.give(page.server.token)
    page.until("the end", lambda: page.text("phase") == "done")
    scale_to(page, 4, None)
    page.until("the second one", lambda: job.migration is not None and len(job.assignment().nodes) == 4)
    stored = page.run("return [localStorage.length, sessionStorage.length, document.cookie, location.href]")
    assert stored[:3] == [0, 0, ""]
    assert page.server.token not in page.browser.page_source + stored[3]
    page.complaints()  # the browser notes the refused one


def test_giving_no_token_changes_nothing(page: Page, job: PaperJob) -> None:
    scale_to(page, 5, None)
    page.until("the question", lambda: page.element("token-cancel").is_displayed())
    page.element("token-cancel").click()
    assert not page.element("token").is_displayed()
    assert job.migration is None


def test_a_migration_is_paused_resumed_and_cancelled(page: Page, job: PaperJob) -> None:
    job.cluster.go.clear()
    page.open("How state moves")
    page.fill("tasks-per-node", "1")
    scale_to(page, 8, page.server.token)
    page.until("a migration", lambda: page.text("phase") == "moving")
    page.element("pause").click()
    page.until("pausing", lambda: page.text("phase") == "pausing")
    job.cluster.go.set()
    page.until("paused", lambda: page.text("phase") == "paused")
    assert "waiting" in {cell["state"] for cell in page.cells()}
    assert not page.element("pause").is_enabled()
    job.cluster.go.clear()
    page.element("resume").click()
    page.until("going on", lambda: page.text("phase") == "moving")
    page.element("cancel").click()
    migration = job.migration
    assert migration is not None
    page.until("the request", lambda: migration.run.is_cancelled)
    job.cluster.go.set()
    page.until("cancelled", lambda: page.text("phase") == "cancelled")
    assert not page.element("cancel").is_enabled()
    assert migration.phase == "cancelled"


def test_a_paused_migration_says_so_instead_of_a_time_left(page: Page, job: PaperJob) -> None:
    page.open("How state moves")
    page.fill("tasks-per-node", "1")
    job.cluster.go.clear()
    scale_to(page, 8, page.server.token)
    page.until("a migration", lambda: page.text("phase") == "moving")
    page.element("pause").click()
    page.until("pausing", lambda: page.text("phase") == "pausing")
    job.cluster.go.set()
    page.until("paused", lambda: page.text("phase") == "paused")
    assert page.text("migration").startswith("Migration 1: 4 → 8 nodes  ssm, progressive, by store")
    assert "time leftpaused" in page.text("migration")
    page.element("resume").click()
    page.until("the end", lambda: page.text("phase") == "done")
    assert "time leftover" in page.text("migration")


def test_every_migration_in_the_chart_has_a_name(page: Page, job: PaperJob) -> None:
    for number, nodes in enumerate((5, 4, 6, None), start=1):
        migration = job.rebalance(relax=True, strategy="even") if nodes is None else job.scale(nodes, relax=True)
        assert migration.wait(10)
        shown = f"Migration {number}:"
        page.until(shown, partial(shown_first, page, shown))
    find = "return [...document.querySelectorAll('#response text.name')].map((name) => name.textContent)"
    names = page.until("four names", lambda: len(found := page.run(find)) == 4 and found)
    assert sorted(names) == ["4 → 5 nodes", "4 → 6 nodes", "5 → 4 nodes", "rebalance 6 nodes"]
    titles = page.run(
        "return [...document.querySelectorAll('#response .band title')].map((title) => title.textContent)"
    )
    assert "Migration 1: 4 → 5 nodes, ssm, progressive, done" in titles
    measure = "(name) => name.getBoundingClientRect().toJSON()"
    boxes = page.run(f"return [...document.querySelectorAll('#response text.name')].map({measure})")
    assert not [(a, b) for a in boxes for b in boxes if a is not b and overlap(a, b)]


def shown_first(page: Page, text: str) -> bool:
    return page.text("migration").startswith(text)


def overlap(a: dict[str, float], b: dict[str, float]) -> bool:
    across = a["left"] < b["right"] and b["left"] < a["right"]
    return across and a["top"] + 2 < b["bottom"] and b["top"] + 2 < a["bottom"]


def test_nodes_are_in_the_order_of_their_names(browser: Chrome) -> None:
    with elastic.api.serve(PaperJob(tasks=24, nodes=12)) as server:
        page = Page(browser, server)
        named = page.until("nodes", lambda: page.run("return [...document.querySelectorAll('#nodes .swatch')]"))
        assert [name.text for name in named] == [f"node-{number}" for number in range(1, 13)]
        assert re.findall(r"node-\d+", page.text("legend")) == [f"node-{number}" for number in range(1, 13)]


class QuietJob(PaperJob):
    """No batch ever comes."""

    def _batch(self) -> int:
        return -1

    @property
    def stream(self) -> Any:
        return SimpleNamespace(lastProgress=None)


def test_an_empty_apply_lag_is_explained(browser: Chrome) -> None:
    with elastic.api.serve(QuietJob()) as server:
        page = Page(browser, server)
        page.until("why", lambda: re.search("apply lag.no batch yet", page.text("figures")))
        page.until("why", lambda: "No batch was applied lately" in page.text("response"))


def test_the_story_of_a_migration_can_be_read(page: Page) -> None:
    scale_to(page, 5, page.server.token)
    page.until("the end", lambda: page.text("phase") == "done")
    page.open("Story")
    page.until("the story", lambda: "StateReleased" in page.text("story"))


def test_nodes_are_removed_by_name(page: Page, job: PaperJob) -> None:
    page.choose("what", "remove")
    page.browser.find_element(By.CSS_SELECTOR, "input[name=remove][value=node-2]").click()
    page.compare()
    assert "leaving node-2" in page.text("plans")
    page.go("ssm", page.server.token)
    page.until("the end", lambda: page.text("phase") == "done")
    assert set(job.assignment().nodes) == {"node-1", "node-3", "node-4"}


def test_a_job_is_rebalanced_in_the_mode_that_was_chosen(page: Page, job: PaperJob) -> None:
    page.choose("what", "rebalance")
    page.fill("tau", "0.05")
    page.open("How state moves")
    page.choose("mode", "live")
    page.choose("transfer", "direct")
    page.compare()
    page.go("even", page.server.token)
    page.until("the end", lambda: page.text("phase") == "done")
    assert job.migration is not None
    assert (job.migration.mode, job.migration.transfer, job.migration.plan.strategy) == ("live", "direct", "even")
    assert job.migration.plan.tau == 0.05


def test_what_is_refused_is_told_with_what_to_do(page: Page, job: PaperJob) -> None:
    job.cluster.go.clear()
    job.scale(5, relax=True)
    scale_to(page, 6, page.server.token)
    page.until("why", lambda: "Wait for it, cancel it" in page.text("message"))
    job.cluster.go.set()
    page.complaints()  # the browser notes the 409


def test_a_plan_that_cannot_be_says_which_numbers_would_do(page: Page) -> None:
    page.element("relax").click()
    page.fill("tau", "0")
    page.fill("count", "15")
    page.compare()
    assert "Raise tau to" in page.text("plans")


def test_older_records_of_the_journal_are_a_click_away(page: Page, job: PaperJob) -> None:
    for nodes in [5, 4] * 7:
        assert job.scale(nodes, relax=True).wait(10)
    page.until("the newest", lambda: page.records() == 25)
    page.element("older").click()
    page.until("all", lambda: page.records() == 28)


def test_a_server_that_comes_back_is_found_again(browser: Chrome, job: PaperJob) -> None:
    with elastic.api.serve(job) as server:
        page = Page(browser, server)
        port = int(server.url.rpartition(":")[2])
    page.until("notice", lambda: page.text("link") == "server lost, trying again")
    with elastic.api.serve(job, port=port):
        page.until("live again", lambda: page.text("link") == "live")


@pytest.mark.parametrize("width", [390, 820, 1360])
def test_nothing_is_cut_off_on_any_screen(page: Page, width: int) -> None:
    page.resize(width)
    try:
        page.until("the width", lambda: page.run("return innerWidth") == width)
        page.compare()
        page.until("room for all", lambda: page.run("return document.documentElement.scrollWidth") <= width)
    finally:
        page.resize(None)


def test_light_and_dark_are_a_click_apart(page: Page) -> None:
    theme = "return document.documentElement.dataset.theme + getComputedStyle(document.body).backgroundColor"
    before = page.run(theme)
    page.element("theme").click()
    assert page.run(theme) != before
    page.element("theme").click()
    assert page.run(theme) == before
