"""The live page in a real browser, on a fake job: every action that it offers."""

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
from elastic.control import TaskMigration
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
    assert page.read_errors() == []


def scale_to(page: Page, nodes: int, token: str | None) -> None:
    page.fill("count", str(nodes))
    page.compare()
    page.carry_out("ssm", token)


def test_the_page_shows_every_task_node_figure_and_batch(page: Page, job: PaperJob) -> None:
    assert page.owners() == list(job.assignment().owners)
    assert re.findall(r"node-\d · \d", page.text("legend")) == [f"node-{number} · 4" for number in (1, 2, 3, 4)]
    rows = page.until("bars", lambda: page.browser.find_elements(By.CSS_SELECTOR, "#nodes .bar.work .fill"))
    assert len(rows) == 4
    assert page.text("cap").endswith("balanced assignment.")
    assert page.text("state") == "running"
    page.until("a chart of response times", lambda: page.run("return document.querySelector('#response path.trigger')"))
    assert "rows per second" in page.text("figures")
    assert page.text("journal") == "No records yet."
    assert page.text("migration").startswith("No migration yet")


def test_nodes_tell_how_many_units_they_follow_and_how_far_behind(page: Page, job: PaperJob) -> None:
    def cells() -> list[str]:
        found = page.browser.find_elements(By.CSS_SELECTOR, "#nodes .value.standbys")
        return [cell.text for cell in found if cell.is_displayed()]

    assert cells() == []
    job.lag = 0
    page.until("standbys", lambda: cells() == ["4"] * 4)
    job.lag = 2
    page.until("their lag", lambda: cells() == ["4, 2 behind"] * 4)


def test_the_graph_of_the_job_is_drawn(page: Page) -> None:
    drawn = page.until("the graph", lambda: page.run("return document.querySelectorAll('#graph .graph-node').length"))
    assert drawn == 2
    titles = page.run("return [...document.querySelectorAll('#graph title')].map((title) => title.textContent)")
    assert titles == ["input input", "stage CountByKey"]
    assert page.run("return document.querySelectorAll('#graph .graph-edge').length") == 1


def test_another_job_can_be_selected(page: Page) -> None:
    page.choose("job", "clicks")
    page.until("the tasks of the other job", lambda: len(page.cells()) == 8 and page.nodes() == {"node-1", "node-2"})


def test_plans_of_several_strategies_are_compared_and_nothing_changes(page: Page, job: PaperJob) -> None:
    page.element("more").click()
    page.element("more").click()
    page.element("fewer").click()
    assert page.element("count").get_attribute("value") == "6"
    assert page.compare() == ["ssm", "even", "consistent-hash"]
    plans = page.text("plans")
    assert "joining node-5, node-6" in plans
    assert "of all state" in plans
    assert job.migration is None


def test_a_button_scales_the_job_and_tasks_in_flight_are_animated(page: Page, job: PaperJob) -> None:
    job.cluster.go.clear()
    scale_to(page, 6, page.server.token)
    page.until("tasks in flight", page.count_in_flight)
    assert page.text("phase") == "moving"
    assert "moving" in {cell["state"] for cell in page.cells()}
    assert re.search(r"tasks0 of \d+", page.text("migration"))
    job.cluster.go.set()
    page.until("the end", lambda: page.text("phase") == "done")
    page.until("all tasks at their new nodes", lambda: page.owners() == list(job.assignment().owners))
    assert page.count_in_flight() == 0
    assert len(page.nodes()) == 6
    assert page.text("plans") == ""
    page.until("two records", lambda: page.records() == 2)
    assert "done after" in page.text("journal")
    page.until("a band in the chart", lambda: page.run("return document.querySelector('#response .band')"))


def test_the_page_asks_for_the_token_once_and_again_if_it_is_wrong(page: Page, job: PaperJob) -> None:
    scale_to(page, 5, "not-the-token-at-all")
    page.until("another question", lambda: page.element("token-wrong").is_displayed())
    assert job.migration is None
    page.enter_token(page.server.token)
    page.until("the end", lambda: page.text("phase") == "done")
    scale_to(page, 4, None)
    page.until("the second one", lambda: job.migration is not None and len(job.assignment().nodes) == 4)
    stored = page.run("return [localStorage.length, sessionStorage.length, document.cookie, location.href]")
    assert stored[:3] == [0, 0, ""]
    assert page.server.token not in page.browser.page_source + stored[3]
    page.read_errors()  # the browser logs the 401


def test_cancelling_the_token_dialog_changes_nothing(page: Page, job: PaperJob) -> None:
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
    page.until("the request", lambda: migration.is_cancelled)
    job.cluster.go.set()
    page.until("cancelled", lambda: page.text("phase") == "cancelled")
    assert not page.element("cancel").is_enabled()
    assert migration.phase == "cancelled"


def test_a_paused_migration_shows_no_time_left(page: Page, job: PaperJob) -> None:
    page.open("How state moves")
    page.fill("tasks-per-node", "1")
    job.cluster.go.clear()
    scale_to(page, 8, page.server.token)
    page.until("a migration", lambda: page.text("phase") == "moving")
    page.element("pause").click()
    page.until("pausing", lambda: page.text("phase") == "pausing")
    job.cluster.go.set()
    page.until("paused", lambda: page.text("phase") == "paused")
    assert page.text("migration").startswith("Migration 1: 4 → 8 nodes  strategy ssm, mode progressive, transfer store")
    assert "time leftpaused" in page.text("migration")
    page.element("resume").click()
    page.until("the end", lambda: page.text("phase") == "done")
    assert "time leftended" in page.text("migration")


def test_every_migration_in_the_chart_has_a_label(page: Page, job: PaperJob) -> None:
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


def test_nodes_are_sorted_by_name(browser: Chrome) -> None:
    with elastic.api.serve(PaperJob(tasks=24, nodes=12)) as server:
        page = Page(browser, server)
        named = page.until("nodes", lambda: page.run("return [...document.querySelectorAll('#nodes .swatch')]"))
        assert [name.text for name in named] == [f"node-{number}" for number in range(1, 13)]
        assert re.findall(r"node-\d+", page.text("legend")) == [f"node-{number}" for number in range(1, 13)]


class QuietJob(PaperJob):
    """A job that never gets a batch."""

    def _batch(self) -> int:
        return -1

    @property
    def stream(self) -> Any:
        return SimpleNamespace(lastProgress=None)


def test_an_empty_apply_lag_is_explained(browser: Chrome) -> None:
    with elastic.api.serve(QuietJob()) as server:
        page = Page(browser, server)
        page.until("why", lambda: re.search("apply lag.no batch yet", page.text("figures")))
        page.until("why", lambda: "No batch was applied recently" in page.text("response"))


def test_the_story_of_a_migration_is_shown(page: Page) -> None:
    scale_to(page, 5, page.server.token)
    page.until("the end", lambda: page.text("phase") == "done")
    page.open("Story")
    page.until("the story", lambda: "released tasks" in page.text("story"))


def test_nodes_are_removed_by_name(page: Page, job: PaperJob) -> None:
    page.choose("what", "remove")
    page.browser.find_element(By.CSS_SELECTOR, "input[name=remove][value=node-2]").click()
    page.compare()
    assert "leaving node-2" in page.text("plans")
    page.carry_out("ssm", page.server.token)
    page.until("the end", lambda: page.text("phase") == "done")
    assert set(job.assignment().nodes) == {"node-1", "node-3", "node-4"}


def test_a_rebalance_uses_the_selected_mode(page: Page, job: PaperJob) -> None:
    page.choose("what", "rebalance")
    page.fill("tau", "0.05")
    page.open("How state moves")
    page.choose("mode", "live")
    page.choose("transfer", "direct")
    page.compare()
    page.carry_out("even", page.server.token)
    page.until("the end", lambda: page.text("phase") == "done")
    assert isinstance(job.migration, TaskMigration)
    assert (job.migration.mode, job.migration.transfer, job.migration.plan.strategy) == ("live", "direct", "even")
    assert job.migration.plan.tau == 0.05


def test_a_refused_request_is_shown_with_what_to_do(page: Page, job: PaperJob) -> None:
    job.cluster.go.clear()
    job.scale(5, relax=True)
    scale_to(page, 6, page.server.token)
    page.until("why", lambda: "Wait for it, cancel it" in page.text("message"))
    job.cluster.go.set()
    page.read_errors()  # the browser logs the 409


def test_an_infeasible_plan_shows_a_feasible_tau(page: Page) -> None:
    page.element("relax").click()
    page.fill("tau", "0")
    page.fill("count", "15")
    page.compare()
    assert "Raise tau to" in page.text("plans")


def test_older_records_of_the_journal_are_loaded_on_request(page: Page, job: PaperJob) -> None:
    for nodes in [5, 4] * 7:
        assert job.scale(nodes, relax=True).wait(10)
    page.until("the newest", lambda: page.records() == 25)
    page.element("older").click()
    page.until("all", lambda: page.records() == 28)


def test_the_page_reconnects_to_a_restarted_server(browser: Chrome, job: PaperJob) -> None:
    with elastic.api.serve(job) as server:
        page = Page(browser, server)
        port = int(server.url.rpartition(":")[2])
    page.until("notice", lambda: page.text("link") == "connection lost, retrying")
    with elastic.api.serve(job, port=port):
        page.until("live again", lambda: page.text("link") == "live")


@pytest.mark.parametrize("width", [390, 820, 1360])
def test_the_page_fits_every_screen_width(page: Page, width: int) -> None:
    page.resize(width)
    try:
        page.until("the width", lambda: page.run("return innerWidth") == width)
        page.compare()
        page.until("room for all", lambda: page.run("return document.documentElement.scrollWidth") <= width)
    finally:
        page.resize(None)


def test_a_button_switches_between_light_and_dark(page: Page) -> None:
    theme = "return document.documentElement.dataset.theme + getComputedStyle(document.body).backgroundColor"
    before = page.run(theme)
    page.element("theme").click()
    assert page.run(theme) != before
    page.element("theme").click()
    assert page.run(theme) == before
