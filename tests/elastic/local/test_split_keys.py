"""A whole job whose keys are split: exact results through scaling, losses and restarts, and fresh answers."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from elastic import export_state, import_state
from elastic.__main__ import main
from elastic.api import serve
from elastic.cli.connection import Connection, announce
from elastic.core.ids import Batch
from elastic.core.view import JobView
from elastic.driver.driver import Driver
from elastic.errors import IncompatibleRestart, InvalidRequest, KeysCannotBeSplit, StateUnavailable, UnmergeableOperator
from elastic.job.job import Job
from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from elastic.operators import CountByKey, Operator, Stage, partial, stateless
from elastic.results.errors import UnknownStage
from elastic.routing import PartialGrouping
from storage import Secret

SECRET = Secret.of("a secret of these tests")
FAST = {"heartbeat_seconds": 0.05, "key_interval_seconds": 1.0}
SCHEMA = pa.schema([("word", pa.string())])
BATCH = ["hot"] * 90 + [f"cold-{number}" for number in range(30)]


@pytest.fixture
def source() -> TableSource:
    return TableSource(LocalNetwork())


def run(source: TableSource, stages: Any, **options: Any) -> Job:
    given = {"key": "word", "operator": stages, "schema": SCHEMA, "secret": SECRET, "settings": FAST, "nodes": 3}
    return local_run(source, **{**given, **options})


@pytest.fixture
def job(source: TableSource) -> Iterator[Job]:
    with run(source, partial(Stage(CountByKey(), name="counts"), "1 hour")) as job:
        yield job


@pytest.fixture
def hasty_job(source: TableSource) -> Iterator[Job]:
    """A job whose queries do not wait."""
    stages = partial(Stage(CountByKey(), name="counts"), "1 hour")
    with run(source, stages, settings={**FAST, "query_seconds": 0.0}) as job:
        yield job


def send(job: Job, source: TableSource, words: list[str] = BATCH) -> None:
    source.append(pa.table({"word": words}, schema=SCHEMA))
    job.process_all_available()


def results_of(job: Job) -> Counter[tuple[int, str, int]]:
    return Counter((row["_batch"], row["word"], row["count"]) for row in job.collected().to_pylist())


def expected_of(batches: int) -> Counter[tuple[int, str, int]]:
    each = Counter(BATCH)
    return Counter((batch, word, count * (batch + 1)) for batch in range(batches) for word, count in each.items())


def rows_of_nodes(job: Job, stage: int) -> list[int]:
    """Return the rows that each node took of a stage."""
    return list(map(sum, rows_of_units(job, stage)))


def rows_of_units(job: Job, stage: int) -> list[list[int]]:
    """Return the rows that each unit of each node took of a stage, as soon as heartbeats have them all."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        nodes = [[unit.rows for unit in node.units if unit.stage == stage] for node in job.status().nodes]
        if sum(map(sum, nodes)) == job.status().rows:
            return nodes
        time.sleep(0.02)
    raise AssertionError("timed out after 20 s waiting for the rows of all nodes")


def test_results_of_every_batch_are_those_of_whole_keys_through_scaling_and_losses(source: TableSource) -> None:
    with run(source, partial(CountByKey())) as job:
        send(job, source)
        assert job.scale(2).wait(30)
        send(job, source)
        job._driver.replace_node(job.assignment().nodes[0], "a test wants it")
        send(job, source)
        assert job.scale(4).wait(30)
        send(job, source)
        assert results_of(job) == expected_of(4)
        assert (job.state("hot"), job.state("hot", fresh=True), job.state("never")) == (360, 360, 0)


def test_a_hot_key_is_spread_over_the_nodes(job: Job, source: TableSource) -> None:
    send(job, source)
    nodes = rows_of_nodes(job, 0)
    assert max(nodes) - min(nodes) <= 1


def test_a_fresh_answer_adds_what_the_partial_stage_holds(job: Job, source: TableSource) -> None:
    for batches in (1, 2):
        send(job, source)
        assert (job.state("hot"), job.state("hot", fresh=True)) == (0, 90 * batches)
    assert job.scale(2).wait(30)
    assert (job.state("hot"), job.state("hot", "counts", fresh=True)) == (0, 180)
    job._driver.replace_node(job.assignment().nodes[0], "a test wants it")
    job._driver.wait_until_serving(job.assignment().nodes, 30)
    assert (job.state("hot", fresh=True), job.state("cold-3", fresh=True)) == (180, 2)
    assert job.state("never", fresh=True) == 0


def test_a_fresh_answer_is_refused_while_units_are_at_other_batches(
    hasty_job: Job, source: TableSource, monkeypatch: Any
) -> None:
    send(hasty_job, source)
    queries = hasty_job._queries
    found = queries._find_partials(("hot",), 0)
    for batch, flushed in ((found[0].batch - 1, -1), (found[0].batch, found[0].batch + 1)):
        odd = found[0]._replace(batch=Batch(batch), value=type(found[0].value)(flushed, found[0].value.partials))
        monkeypatch.setattr(queries, "_find_partials", lambda *_, odd=odd: [odd, *found[1:]])
        with pytest.raises(StateUnavailable):
            hasty_job.state("hot", fresh=True)


@pytest.mark.parametrize("fresh", [False, True])
def test_an_answer_from_before_what_was_published_is_refused(
    hasty_job: Job, source: TableSource, monkeypatch: Any, fresh: bool
) -> None:
    """A unit that is being restored repeats old batches, and all units of a new node may be at the same one."""
    send(hasty_job, source)
    queries, before = hasty_job._queries, Batch(hasty_job._driver.view.published_batch - 1)
    ask, find = queries._ask, queries._find_partials
    monkeypatch.setattr(queries, "_ask", lambda *question: ask(*question)._replace(batch=before))
    monkeypatch.setattr(queries, "_find_partials", lambda *asked: [one._replace(batch=before) for one in find(*asked)])
    with pytest.raises(StateUnavailable):
        hasty_job.state("hot", fresh=fresh)


class ShownDriver:
    """A driver that shows these views of the job, and then the last one."""

    def __init__(self, driver: Driver, views: list[JobView]) -> None:
        self.links = driver.links
        self._shown = [*views]

    @property
    def view(self) -> JobView:
        return self._shown.pop(0) if len(self._shown) > 1 else self._shown[0]


@pytest.mark.parametrize("fresh", [False, True])
def test_no_answer_is_from_the_time_in_which_keys_move(source: TableSource, monkeypatch: Any, fresh: bool) -> None:
    """Between the round in which a key leaves its unit and that in which it joins another one, no unit has it."""
    stages = partial(Stage(CountByKey(), name="counts", grouping="table"))
    with run(source, stages, settings={**FAST, "query_seconds": 0.0}) as job:
        send(job, source)
        queries, now = job._queries, job._driver.view
        moved = replace(now, regrouped_batch=Batch(now.published_batch + 1))
        for views in ([moved], [now, moved], [moved, now]):
            monkeypatch.setattr(queries, "_driver", ShownDriver(job._driver, views))
            with pytest.raises(StateUnavailable):
                queries._look_up_fresh("hot", 1, 0) if fresh else queries._look_up("hot", 1, stale=False)
            monkeypatch.undo()
        assert job.state("hot", fresh=fresh) == 90


def test_an_idle_stream_emits_partials_when_the_interval_ends(source: TableSource) -> None:
    with run(source, partial(CountByKey(), "300 ms")) as job:
        send(job, source)
        deadline = time.monotonic() + 20
        while job.state("hot") != 90 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert job.state("hot") == 90


def test_what_is_held_and_what_is_counted_outlive_a_restart(source: TableSource, tmp_path: Path) -> None:
    stages = partial(Stage(CountByKey(), name="counts"), "1 hour")
    with run(source, stages, store=tmp_path.as_uri()) as job:
        send(job, source)
    with run(source, stages, store=tmp_path.as_uri()) as again:
        send(again, source)
        assert (again.state("hot"), again.state("hot", fresh=True)) == (0, 180)
    # Another interval, and other keys that are split, are no other job.
    shorter = partial(Stage(CountByKey(), name="counts"), "1 batch", split="head")
    with run(source, shorter, store=tmp_path.as_uri()) as last:
        for _ in range(3):  # every task that holds something has rows, or nothing of it
            send(last, source)
        assert last.state("hot", fresh=True) == 450
        assert last.routing().groupings[0].splits == "head"  # type: ignore[attr-defined]
    with pytest.raises(IncompatibleRestart):
        run(source, Stage(CountByKey(), name="counts"), store=tmp_path.as_uri())


@pytest.mark.parametrize("every", [("1 batch", "1 hour"), ("1 hour", "1 batch"), ("1 hour", "2 hours")])
@pytest.mark.parametrize("front", [[], [stateless(lambda rows: rows, SCHEMA)]], ids=["first", "second"])
def test_batches_that_are_replayed_are_held_as_they_were_although_the_interval_has_changed(
    source: TableSource, tmp_path: Path, every: tuple[str, str], front: list[Operator]
) -> None:
    lives = [[*front, *partial(Stage(CountByKey(), name="counts"), one)] for one in every]
    job = run(source, lives[0], store=tmp_path.as_uri())
    for _ in range(3):
        send(job, source)
    before = job.state("hot", "counts")
    job.stop(drain=False)  # saves nothing
    with run(source, lives[1], store=tmp_path.as_uri()) as again:
        # A fresh answer waits until all units have repeated what was published.
        assert (again.state("hot", "counts", fresh=True), again.state("hot", "counts")) == (270, before)
        send(again, source)
        assert again.state("hot", "counts", fresh=True) == 360


def test_nodes_choose_units_of_a_partial_stage_behind_another_one(source: TableSource) -> None:
    stages = [stateless(lambda rows: rows, SCHEMA), *partial(Stage(CountByKey(), name="counts"), split="head")]
    with run(source, stages) as job:
        for _ in range(3):
            send(job, source)
        assert job.scale(2).wait(30)
        send(job, source)
        assert results_of(job) == expected_of(4)
        assert job.state("hot", "counts") == 360


def test_keys_can_be_split_while_the_job_runs_and_that_outlives_a_restart(source: TableSource, tmp_path: Path) -> None:
    stages = partial(Stage(CountByKey(), name="counts"), split="none")
    with run(source, stages, store=tmp_path.as_uri()) as job:
        send(job, source)
        assert max(rows_of_nodes(job, 0)) >= 90
        assert job._cluster.find_unsplit() == "partial-counts"  # what the autoscaler would split
        job.split("head")
        assert job._cluster.find_unsplit() is None
        assert job.routing().groupings[0] == PartialGrouping("head", "none")
        for _ in range(4):
            send(job, source)
        assert max(rows_of_nodes(job, 0)) < 90 + 4 * 60
        assert results_of(job) == expected_of(5)
    with run(source, stages, store=tmp_path.as_uri()) as again:
        assert again.routing().groupings[0] == PartialGrouping("head", "none")
        again.split("all", "counts")
        again.split("none", "partial-counts")
        assert again.routing().groupings[0] == PartialGrouping("none", "none")
        for unknown in ("tail", ["head"]):
            with pytest.raises(InvalidRequest, match="Use one of all, head, none"):
                again.split(unknown)  # type: ignore[arg-type]
        with pytest.raises(UnknownStage):
            again.split("head", "letters")
    with run(source, partial(Stage(CountByKey(), name="counts"), split="all"), store=tmp_path.as_uri()) as last:
        assert last.routing().groupings[0] == PartialGrouping("all", "all")
    with run(source, CountByKey(), name="plain") as plain, pytest.raises(KeysCannotBeSplit, match=r"partial\(\.\.\.\)"):
        plain.split()


class Slow(CountByKey):
    """Takes a millisecond for every row that it combines."""

    def combine(self, rows: pa.Table) -> pa.Table:
        time.sleep(0.001 * rows.num_rows)
        return super().combine(rows)


def test_the_autoscaler_splits_a_key_that_overloads_its_node_and_says_why(source: TableSource) -> None:
    with run(source, partial(Stage(Slow(), name="counts"), split="none")) as job:
        job.autoscale("imbalance", ceiling=3, floor=3, window_seconds=2.0, cool_down_seconds=600.0)
        batches, deadline = 0, time.monotonic() + 60
        while job.routing().groupings[0] != PartialGrouping("head", "none"):
            assert time.monotonic() < deadline, job.autoscaler
            send(job, source, ["hot"] * 200)
            batches += 1
        assert job.state("hot") == 200 * batches
        [decided] = [record for record in job.journal() if record["kind"] == "decided"]
        assert "busier than the mean" in decided["reason"]
        assert "partial-counts can split its heaviest keys" in decided["reason"]
        assert (decided["nodes"], decided["target"], job.migration) == (3, 3, None)


def test_a_job_with_a_partial_stage_begins_with_the_state_of_one_without(source: TableSource, tmp_path: Path) -> None:
    store, secret = tmp_path.as_uri(), "a secret of these tests"
    stage = Stage(CountByKey(), name="counts", grouping="table")
    with run(source, stage, name="whole", store=store, tasks=8) as job:
        send(job, source)
    export_state("whole", tmp_path / "exported", store=store, secret=secret)
    stages = partial(stage, split="none")
    import_state(
        tmp_path / "exported" / "stage-00",
        name="parted",
        store=store,
        operator=stages,
        key="word",
        schema=SCHEMA,
        stage="counts",
        tasks=8,
        secret=secret,
    )
    again = TableSource(LocalNetwork())
    with run(again, stages, name="parted", store=store, tasks=8) as job:
        job.split("head")
        send(job, again)
        assert (job.state("hot"), job.state("cold-3")) == (180, 2)


def test_keys_are_split_from_the_command_line(source: TableSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    stages = partial(Stage(CountByKey(), name="counts"), split="none")
    with (
        run(source, stages, name="split") as job,
        serve(job) as server,
        announce(Connection(server.url, job.name, server.token)),
    ):
        said = CliRunner().invoke(main, ["split"])
        assert (said.exit_code, job.routing().groupings[0]) == (0, PartialGrouping("head", "none")), said.output
        assert "split from now on: head (a head key has all nodes" in said.output
        said = CliRunner().invoke(main, ["split", "--keys", "all", "--stage", "counts", "--json"])
        assert json.loads(said.output) == {"split": "all", "stage": "counts"}
        assert job.routing().groupings[0] == PartialGrouping("all", "none")
        for arguments, why in (
            (["--stage", "letters"], "no stage 'letters'"),
            (["--keys", "tail"], "'tail' is not one"),
        ):
            said = CliRunner().invoke(main, ["split", *arguments])
            assert (said.exit_code != 0, why in said.output) == (True, True), said.output
        assert job.routing().groupings[0] == PartialGrouping("all", "none")


def test_nodes_learn_of_other_keys_to_split_with_the_next_step(source: TableSource) -> None:
    stages = [stateless(lambda rows: rows, SCHEMA), *partial(Stage(CountByKey(), name="counts"), split="none")]
    with run(source, stages, tasks=6) as job:
        send(job, source)
        assert [sum(rows >= 90 for rows in node) for node in sorted(rows_of_units(job, 1))].count(1) == 1
        job.split("head")
        for _ in range(4):
            send(job, source)
        assert results_of(job) == expected_of(5)
        assert all(max(node) >= 90 for node in rows_of_units(job, 1))


def test_a_question_to_the_wrong_stage_is_refused(job: Job, source: TableSource) -> None:
    with pytest.raises(InvalidRequest, match="Ask stage 'counts'"):
        job.state("hot", "partial-counts")
    with run(source, CountByKey(), name="plain") as plain, pytest.raises(InvalidRequest, match="Ask without fresh"):
        plain.state("hot", fresh=True)


def test_an_operator_that_cannot_merge_starts_nothing(source: TableSource) -> None:
    class Plain(Operator):
        pass

    with pytest.raises(UnmergeableOperator):
        run(source, partial(Plain()))
