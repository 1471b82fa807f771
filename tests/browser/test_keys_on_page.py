"""Heaviest keys, key tables and moves of keys on the page: on a fake job, and on a real one in threads."""

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

import elastic.api
from elastic.api.server import Server
from elastic.job.job import Job
from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from elastic.operators import KeyedOperator, Stage
from elastic.routing import hash_key
from tests.browser.page import Page
from tests.elastic.api.paper_job import PaperJob
from tests.elastic.api.paper_keys import KEYS

pytestmark = pytest.mark.browser


@pytest.fixture
def job() -> PaperJob:
    return PaperJob()


@pytest.fixture
def server(job: PaperJob) -> Iterator[Server]:
    with elastic.api.serve([job, PaperJob("clicks", grouping="hash")]) as server:
        yield server


@pytest.fixture
def page(browser: Chrome, server: Server) -> Iterator[Page]:
    page = Page(browser, server)
    yield page
    assert page.read_errors() == []


def read_labels(page: Page) -> list[str]:
    find = "return [...document.querySelectorAll('#keys .row.one .label')].map((label) => label.textContent)"
    return list(page.run(find))


def read_guests(page: Page) -> dict[int, int]:
    """Return the number of guests by task, of tasks that the strip marks."""
    return {int(cell["task"]): int(cell["guests"]) for cell in page.cells() if int(cell["guests"])}


def test_without_the_token_keys_have_no_names_and_with_it_they_have(page: Page) -> None:
    hashes = [str(key.hash) for key in KEYS[:10]]
    page.until("the keys", lambda: read_labels(page) == hashes)
    assert "Zürich" not in page.browser.page_source
    page.element("names").click()
    page.enter_token("not-the-token-at-all")
    page.until("another question", lambda: page.element("token-wrong").is_displayed())
    assert read_labels(page) == hashes
    page.enter_token(page.server.token)
    page.until("the names", lambda: read_labels(page) == [key.name or str(key.hash) for key in KEYS[:10]])
    assert not page.element("names").is_displayed()


def test_a_guest_is_marked_in_the_list_and_on_the_task_that_hosts_it(page: Page) -> None:
    page.until("the guest", lambda: read_guests(page) == {3: 1})
    title = page.run("return document.querySelector('#strip .cell[data-task=\"3\"] title').textContent")
    assert title.endswith("hosts 1 guest")
    marks = page.run("return document.querySelectorAll('#strip .guests[visibility=visible]').length")
    assert marks == 1
    rows = page.browser.find_elements(By.CSS_SELECTOR, "#keys .row.one")
    assert [row.get_attribute("data-guest") for row in rows] == ["true"] + ["false"] * 9
    displayed = [mark.is_displayed() for mark in page.browser.find_elements(By.CSS_SELECTOR, "#keys .guest")]
    assert displayed == [True] + [False] * 9
    assert "guest of task 3 on node-1, home node-4" in str(rows[0].get_attribute("title"))
    assert page.text("tables") == "Key table of CountByKey1 of 3,000 entries, 1 task with guests"


def test_both_levels_are_compared_and_nothing_changes(page: Page, job: PaperJob) -> None:
    page.fill("most-entries", "30")
    page.element("compare-levels").click()
    find = "return [...document.querySelectorAll('#levels article')].map((one) => one.dataset.level)"
    page.until("both plans", lambda: page.run(find) == ["tasks", "keys"])
    levels = page.text("levels")
    for text in ("leaves one node 13 % above the mean", "moves 17 keys, 17.4 kB", "18 of 30 entries", "level keys:"):
        assert text in levels
    assert page.run("return document.querySelector('#levels .best').dataset.level") == "keys"
    assert job.migration is None


def test_one_button_moves_keys_and_their_migration_is_followed_and_cancelled(page: Page, job: PaperJob) -> None:
    job.cluster.go.clear()
    page.element("move-keys").click()
    page.enter_token(page.server.token)
    page.until("a migration", lambda: page.text("phase") == "moving")
    assert "move 17 keys" in page.text("migration")
    assert "keys0 of 17" in page.text("migration")
    page.element("cancel").click()
    page.until("the request", lambda: job.migration is not None and job.migration.is_cancelled)
    job.cluster.go.set()
    page.until("cancelled", lambda: page.text("phase") == "cancelled")
    page.element("move-keys").click()
    page.until("the end", lambda: "Migration 2" in page.text("migration") and page.text("phase") == "done")
    assert "keys17 of 17" in page.text("migration")
    [table] = job.key_tables()
    page.until("all guests on the strip", lambda: read_guests(page) == table.guests)
    page.until("four records", lambda: page.records() == 4)
    assert "moves 17 keys, 17.4 kB, by knap" in page.text("journal")
    page.until("the names, since the token is known", lambda: "Zürich, 8001" in read_labels(page))


def test_a_job_that_counts_no_keys_has_no_panel_of_keys(page: Page) -> None:
    page.until("the panel", lambda: page.element("keys-card").is_displayed())
    page.choose("job", "clicks")
    page.until("no panel", lambda: not page.element("keys-card").is_displayed())
    assert not page.element("guests-note").is_displayed()


@pytest.mark.parametrize("width", [400, 1280])
def test_the_panel_of_keys_fits_every_screen_width(page: Page, width: int) -> None:
    page.resize(width)
    try:
        page.until("the width", lambda: page.run("return innerWidth") == width)
        page.run("document.getElementById('compare-levels').click()")
        page.until("plans", lambda: page.run("return document.querySelectorAll('#levels article').length") == 2)
        page.until("room for all", lambda: page.run("return document.documentElement.scrollWidth") <= width)
    finally:
        page.resize(None)


class SlowCount(KeyedOperator):
    """Counts rows, and sleeps for every row: work that two nodes in one process do at the same time."""

    row_seconds = 0.0005

    def initial_state(self) -> int:
        return 0

    def handle_key(self, _key: Any, rows: list[Any], state: Any, _context: Any) -> None:
        time.sleep(self.row_seconds * len(rows))
        state.update(state.get() + len(rows))

    def lookup(self, value: dict[Any, int], key: tuple[Any, ...]) -> int:
        return value.get(key[0], 0)


class Feed(threading.Thread):
    """Appends a batch of words ten times a second; four hot words are in task 0, so no move of tasks divides them."""

    def __init__(self, source: TableSource) -> None:
        super().__init__()
        words = [f"word {number}" for number in range(200)]
        self.hot = [word for word in words if hash_key(word) % 8 == 0][:4]
        cold = [word for word in words if hash_key(word) % 8][:10]
        self.rows = pa.table({"word": [*self.hot * 20, *cold]})
        self.batches = 0
        self._source = source
        self._ends = threading.Event()

    def run(self) -> None:
        while not self._ends.wait(0.1):
            self._source.append(self.rows)
            self.batches += 1

    def end(self) -> None:
        self._ends.set()
        self.join()


@pytest.fixture
def feed() -> Iterator[Feed]:
    feed = Feed(TableSource(LocalNetwork()))
    yield feed
    feed.end()


@pytest.fixture
def skewed(feed: Feed) -> Iterator[Job]:
    stage = Stage(SlowCount(), "word", grouping="table")
    settings = {"heartbeat_seconds": 0.1, "key_interval_seconds": 0.5}
    with local_run(feed._source, key="word", operator=stage, schema=feed.rows.schema, settings=settings) as job:
        feed.start()
        yield job


def read_imbalance(page: Page) -> float:
    """Return how far the busiest node is above the mean, in per cent; 0 while all are idle."""
    found = re.search(r"busiest node([\d.]+) %", page.text("figures"))
    return 0.0 if found is None else float(found[1])


def read_nodes(page: Page) -> list[str]:
    """Return the nodes of the four heaviest keys."""
    find = "return [...document.querySelectorAll('#keys .row.one .swatch')].map((node) => node.textContent)"
    return list(page.run(find)[:4])


def test_a_user_sees_hot_keys_moves_them_and_the_nodes_are_balanced(browser: Chrome, skewed: Job, feed: Feed) -> None:
    with elastic.api.serve(skewed) as server:
        page = Page(browser, server)
        hot = {str(hash_key(word)) for word in feed.hot}
        page.until("the hot keys", lambda: set(read_labels(page)[:4]) == hot)
        assert read_nodes(page) == ["node-1"] * 4
        page.until("the imbalance", lambda: read_imbalance(page) > 50)
        before = read_imbalance(page)

        page.element("move-keys").click()
        page.enter_token(server.token)
        page.until("the end", lambda: page.text("phase") == "done")
        moved = re.search(r"keys(\d+) of (\d+)", page.text("migration"))
        assert moved is not None
        assert moved[1] == moved[2]  # two keys are enough, but work is measured in seconds, and so is never quite even
        page.until("hot keys on both nodes", lambda: set(read_nodes(page)) == {"node-1", "node-2"})
        assert sum(read_guests(page).values()) == int(moved[1])
        page.until("names, since the token is known", lambda: set(read_labels(page)[:4]) == set(feed.hot))
        page.until("balanced nodes", lambda: read_imbalance(page) < before / 2)
        assert page.read_errors() == []
    feed.end()
    skewed.process_all_available()
    expected = {word: count * feed.batches for word, count in Counter(feed.rows["word"].to_pylist()).items()}
    assert {word: skewed.state(word) for word in expected} == expected
