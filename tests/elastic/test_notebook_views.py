"""What notebooks show of jobs, plans and migrations, and what a REPL shows of everything that a user holds."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pyarrow as pa
import pytest

import elastic
from elastic.control.html import migration_to_html
from elastic.core.hand_over import MigrationView
from elastic.job.html import job_to_html
from elastic.job.status import JobStatus, NodeStatus
from elastic.operators import (
    Aggregate,
    CountByKey,
    DropDuplicates,
    Enrich,
    IntervalJoin,
    Operator,
    Side,
    Stage,
    TopK,
    WindowJoin,
    drop_duplicates_within_watermark,
    partial,
    session_window,
    stateless,
    window,
)
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from elastic.operators.graph import JobGraph
from elastic.results import MemorySink, NoSink, ParquetSink, Sink, StoreSink
from migration import Assignment, Workload, plan, plan_keys
from migration.keys.workloads import KeyWorkload

EVIL = "<script>alert('x')</script>&\""


class Tags(HTMLParser):
    """Collects tags and attributes, and checks that every tag that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


SVG = {"svg", "g", "title", "rect", "text", "path"}
SVG_ATTRIBUTES = {
    *("role", "aria-label", "viewbox", "width", "height", "x", "y", "rx", "d"),
    *("font-family", "font-size", "text-anchor", "stroke", "stroke-dasharray", "fill"),
}


def check(html: str) -> str:
    """Return HTML that is well-formed, and has neither scripts nor links nor anything that is loaded."""
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    assert tags.tags <= {"div", "span", "table", "thead", "tbody", "tr", "th", "td", *SVG}
    assert tags.attributes <= {"style", "title", *SVG_ATTRIBUTES}
    assert "url(" not in html
    assert "<script" not in html
    return html


@pytest.fixture
def job() -> Iterator[elastic.Job]:
    rows = pa.table({"word": ["spark", "elastic", "spark"]})
    with elastic.local_run([rows], key="word", operator=CountByKey(), name="words") as job:
        job.process_all_available()
        yield job


def test_a_job_its_plan_and_its_migration_are_shown_in_notebooks(job: elastic.Job) -> None:
    assert "Job words: running" in check(job._repr_html_())
    assert "Plan (ssm): 2 → 3 nodes" in check(job.plan(3)._repr_html_())
    migration = job.scale(3)
    migration.wait()
    shown = check(migration._repr_html_())
    assert "Migration 2 → 3 nodes (ssm, progressive): done" in shown
    assert "100%" in shown
    assert check(job._repr_html_()).count('title="node-') == 3
    for one in (job, migration, migration.plan, migration.view(), job.status()):
        assert "\n" not in repr(one)
        assert len(repr(one)) < 200
    assert repr(migration.plan).startswith("Plan(ssm, 2 -> 3 nodes, moves=")
    assert repr(migration.view()).startswith(f"MigrationView({migration.id!r}, ")
    assert repr(job).startswith("Job('words', running, nodes=3, ")


def test_names_are_escaped() -> None:
    current = Assignment((EVIL, "b"), (0, 4, 8))
    shown = check(plan(current, 3, Workload.uniform(8))._repr_html_())
    assert "&lt;script&gt;" in shown
    status = JobStatus(EVIL, "running", 1, 1, 1, 1, 0, 1, 0, (), (NodeStatus(EVIL, True, "", 1, 0, 0, 0, ()),))
    assert "&lt;script&gt;" in check(job_to_html(status, current, JobGraph((EVIL,), {"a": (EVIL,)}, frozenset())))
    loads = KeyWorkload.zipf(keys=50, nodes=2).loads()
    key_plan = plan_keys(loads, [EVIL, "b"], theta=0.5, relax=True)
    assert "&lt;script&gt;" in check(key_plan._repr_html_())
    assert re.fullmatch(r"KeyPlan\(\w+, 2 nodes, keys=50, moves=\d+, .*\)", repr(key_plan))


def test_a_wide_assignment_and_many_nodes_stay_short() -> None:
    shown = check(plan(Assignment.even(20_000, 500), 501, Workload.uniform(20_000))._repr_html_())
    assert "more …" in shown
    assert len(shown) < 250_000


def test_a_migration_without_moves_is_complete(job: elastic.Job) -> None:
    progress = job.scale(2).progress()
    assert "100%" in check(migration_to_html("Migration", progress))
    assert isinstance(repr(MigrationView("m", Assignment.even(2, 1))), str)


ADS, CLICKS = Side("ads", time="ts"), Side("clicks", time="ts")


class Custom(Operator):
    """An operator of a user."""

    def __init__(self, limit: int, model: object, path: str = "here") -> None:
        self._limit = limit
        self.model = model
        self.path = path


class Broken(Operator):
    def __init__(self, limit: object) -> None:
        self.limit = limit


class BrokenValue(list[int]):
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("operator", "shown"),
    [
        (CountByKey(), "CountByKey()"),
        (CountByKey("n", silent=True), "CountByKey('n', silent=True)"),
        (Aggregate(n=F.count(), total=F.sum("x")), "Aggregate(n=count(), total=sum('x'))"),
        (Aggregate(m=F.mean("x"), d=F.approx_count_distinct("x")), None),
        (
            Aggregate(n=F.count("x")).over(window("10 seconds", "2 s"), time="ts"),
            "Aggregate(n=count('x')).over(window('10 seconds', '2 seconds'), time='ts')",
        ),
        (
            Aggregate(n=F.count()).over(session_window("90 minutes")),
            "Aggregate(n=count()).over(session_window('90 minutes'))",
        ),
        (TopK(10, by="price"), "TopK(10, by='price')"),
        (DropDuplicates("a", "b", ttl="1 day"), "DropDuplicates('a', 'b')"),
        (
            drop_duplicates_within_watermark("id", time="ts", within="5 s"),
            "drop_duplicates_within_watermark('id', time='ts')",
        ),
        (IntervalJoin(ADS, CLICKS, upper="9 ms"), "IntervalJoin(Side('ads'), Side('clicks'))"),
        (WindowJoin(ADS, CLICKS, window("1 h")), "WindowJoin(Side('ads'), Side('clicks'))"),
        (Enrich(ADS, table=CLICKS), "Enrich(Side('ads'), table=Side('clicks'))"),
        (stateless(len, "n long"), "stateless(len)"),
        (Custom(3, object()), "Custom(3)"),
        (Custom(3, object(), "x" * 100), None),
        (Broken(BrokenValue()), "Broken(...)"),
    ],
)
def test_an_operator_is_one_line(operator: Operator, shown: str | None) -> None:
    assert shown is None or repr(operator) == shown
    assert "\n" not in repr(operator)
    assert len(repr(operator)) < 120


def test_a_stage_is_one_line_with_what_is_not_the_default() -> None:
    assert repr(Stage(CountByKey())) == "Stage(CountByKey())"
    stage = Stage(TopK(1, by="ts"), ("a", "b"), "last", grouping="table", standbys=1)
    assert repr(stage) == "Stage(TopK(1, by='ts'), key=('a', 'b'), name='last', standbys=1, grouping='table')"
    assert repr(partial(CountByKey())[1]) == "Stage(CountByKey())"


def test_a_sink_is_one_line(tmp_path: object) -> None:
    folder = f"file://{tmp_path}"
    sinks: list[tuple[Sink, str]] = [
        (NoSink(), "NoSink()"),
        (StoreSink(), "StoreSink()"),
        (MemorySink(), "MemorySink(batches=0, rows=0)"),
        (ParquetSink(folder), f"ParquetSink('{folder}', next=0)"),
    ]
    for sink, shown in sinks:
        assert repr(sink) == shown
