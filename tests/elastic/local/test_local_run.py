"""A whole job inside one process: what it computes, how it scales, restarts and recovers, and the causes of events."""

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from elastic.core import events
from elastic.core.ids import Batch
from elastic.core.view import JobView
from elastic.deadlines import Deadline
from elastic.errors import IndivisibleState, InvalidJob, JobStopped, QueryFailed, SinkFailed, StateUnavailable
from elastic.job.job import Job
from elastic.local import LocalNetwork, ThreadLauncher
from elastic.local.run import TableSource, local_run
from elastic.operators import Context, CountByKey, Operator, Stage, State, Timer, ToNext, ToSink
from elastic.results import MemorySink
from elastic.routing import KeyTable, KeyTargets, TableGrouping, hash_key
from storage import Secret
from storage.state import BatchTime, UnitId

SECRET = Secret.of("a secret of these tests")
FAST = {"heartbeat_seconds": 0.1}
WORDS = [["a", "b", "a"], ["b", "c"], ["a"], ["d", "a", "c", "c"]]
BATCHES = [pa.table({"word": words}) for words in WORDS]


def counts_of(batches: int) -> Counter[str]:
    return Counter(word for words in WORDS[:batches] for word in words)


def run_words(batches: Any = BATCHES, **options: Any) -> Job:
    return local_run(batches, key="word", operator=CountByKey(), secret=SECRET, settings=FAST, **options)


@pytest.fixture
def job() -> Iterator[Job]:
    with run_words() as job:
        job.process_all_available()
        yield job


def test_everything_is_counted_and_can_be_read_by_key(job: Job) -> None:
    assert {word: job.state(word) for word in "abcde"} == {**counts_of(4), "e": 0}
    latest = {row["word"]: row["count"] for row in job.collected().to_pylist()}
    assert latest == counts_of(4)
    assert job.batches() == (3, 3)
    status = job.status()
    assert (status.state, status.rows, status.problems) == ("running", 10, ())


def test_all_that_is_available_is_processed_though_a_restart_interrupts_the_stream() -> None:
    source = TableSource(LocalNetwork(), BATCHES[:1])
    with run_words(source) as job:
        job.process_all_available()
        stream = job._stream
        waited = threading.Thread(target=job.process_all_available)
        with stream.interrupted():
            for batch in BATCHES[1:]:
                source.append(batch)
            waited.start()
            waited.join(0.2)
            assert waited.is_alive()
        waited.join(30)
        assert job.batches() == (3, 3)
    source.append(BATCHES[0])
    stream.process_all_available()  # of a stopped job: nothing more comes


def test_the_routing_is_that_of_the_newest_commit(job: Job) -> None:
    before = job.routing()
    job.scale(3).wait(30)
    assert (len(before.assignment.nodes), before.groupings) == (2, job.routing().groupings)
    assert job.routing().assignment == job.assignment()
    assert job.routing().epoch > before.epoch


def test_a_stop_saves_everything_and_then_nothing_can_be_asked(job: Job) -> None:
    report = job.stop()
    assert report.is_clean
    assert (report.last_batch, report.published_batch, report.saved_batch) == (3, 3, 3)
    assert job.status().state == "stopped"
    assert job.await_termination(0)
    with pytest.raises(JobStopped):
        job.state("a")
    with pytest.raises(JobStopped):
        job.scale(3)
    assert job.journal() == []  # the store is opened once more


def test_a_job_is_scaled_while_it_runs_and_loses_no_row(job: Job) -> None:
    assert job.scale(4).wait(30)
    assert job.scale(1, transfer="direct").wait(30)
    assert {word: job.state(word) for word in "abcd"} == counts_of(4)
    assert job.node_count == 1
    assert [record["kind"] for record in job.journal()] == ["began", "ended"] * 2


@pytest.mark.parametrize("drain", [True, False])
def test_a_job_continues_where_it_was_in_the_store(tmp_path: Path, drain: bool) -> None:
    with run_words(BATCHES[:2], store=tmp_path.as_uri(), nodes=3) as first:
        first.process_all_available()
        assert first.stop(drain=drain).last_batch == 1
    with run_words(BATCHES, store=tmp_path.as_uri(), nodes=2) as second:
        second.process_all_available()
        assert {word: second.state(word) for word in "abcd"} == counts_of(4)
        assert second.node_count == 3  # as committed
        assert second.batches() == (3, 3)
        assert second.status().rows == 5


def test_a_batch_that_a_checkpoint_sends_again_is_counted_once(tmp_path: Path) -> None:
    with run_words(BATCHES[:2], store=tmp_path.as_uri()) as first:
        first.process_all_available()
    source = TableSource(LocalNetwork(), BATCHES)
    source.ingested = 1
    with run_words(source, store=tmp_path.as_uri()) as second:
        second.process_all_available()
        assert {word: second.state(word) for word in "abcd"} == counts_of(4)


def test_more_batches_may_come_while_the_job_runs() -> None:
    source = TableSource(LocalNetwork())
    with run_words(source, schema=BATCHES[0].schema) as job:
        for number, batch in enumerate(BATCHES, 1):
            source.append(batch)
            job.process_all_available()
            assert {word: job.state(word) for word in "abcd"} == {**dict.fromkeys("abcd", 0), **counts_of(number)}


def test_a_job_without_batches_and_schema_is_refused() -> None:
    with pytest.raises(InvalidJob, match="schema="):
        run_words([])


def test_a_lost_node_is_replaced_and_every_row_counts_once(tmp_path: Path) -> None:
    launchers: list[ThreadLauncher] = []
    network = LocalNetwork()

    def launch(common: Any) -> ThreadLauncher:
        launchers.append(ThreadLauncher(common, network))
        return launchers[0]

    source = TableSource(network, BATCHES[:2])
    with run_words(source, network=network, launcher=launch, store=tmp_path.as_uri()) as job:
        job.process_all_available()
        launchers[0].cancel(next(iter(launchers[0].incarnations)))
        for batch in BATCHES[2:]:
            source.append(batch)
        job.process_all_available()
        assert {word: job.state(word) for word in "abcd"} == counts_of(4)
        assert job.status().losses == 1


def test_rows_go_from_stage_to_stage() -> None:
    stages = [Stage(CountByKey(), ("word",), "counts"), Stage(CountByKey("words"), ("count",), "levels")]
    with local_run(BATCHES, key="word", operator=stages, settings=FAST) as job:
        job.process_all_available()
        levels = Counter(counts_of(batch + 1)[word] for batch in range(4) for word in set(WORDS[batch]))
        assert job.state("a", "counts") == 4
        assert {level: job.state(level, "levels") for level in levels} == levels


class Failing(Operator):
    """Raises at the word "c"."""

    output_schema = "word string"

    def initial_state(self) -> None:
        return None

    def handle_batch(self, rows: pa.Table, _state: State, _context: Context) -> None:
        if "c" in rows["word"].to_pylist():
            raise ValueError("no such word")


def test_an_operator_that_raises_ends_the_job_with_its_error() -> None:
    job = local_run(BATCHES, key="word", operator=Failing(), settings=FAST)
    with pytest.raises(Exception, match="no such word") as raised:
        job.process_all_available()
    with pytest.raises(type(raised.value), match="no such word"):
        job.await_termination(20)
    assert job.status().state == "failed"
    assert job.stop().last_batch <= 3


class FullSink(MemorySink):
    def deliver(self, _batch: int, _rows: pa.Table) -> None:
        raise OSError("no space left")


def test_results_that_cannot_reach_the_sink_are_an_error_of_the_wait_and_a_problem_in_the_status() -> None:
    with run_words(sink=FullSink()) as job:
        with pytest.raises(SinkFailed, match="no space left"):
            job.process_all_available()
        assert job.status().problems == ("results no longer reach the sink: OSError: no space left",)
        assert job.status().state == "running"


def test_causes_are_followed_from_a_batch_to_its_results() -> None:
    """The id of an event is the cause of its commands; the answer of the store or the node brings it back."""
    with run_words(BATCHES[:1], nodes=1) as job:
        job.process_all_available()
        story = job.story()
    found = [re.match(r"e(\d+) \(cause (\w+)\) (\w+)\(.*\) -> (.*)", line) for line in story]
    decisions = [line.groups() for line in found if line is not None]
    assert len(decisions) == len(story)

    def follow(kind: str, cause: str) -> str:
        """Return the id of the event of that kind which this one caused."""
        [number] = [number for number, caused_by, event, _ in decisions if (event, caused_by) == (kind, cause)]
        return f"e{number}"

    logged = follow("BatchLogged", "none")
    committed = follow("RoundCommitted", logged)
    applied = follow("StepApplied", committed)
    follow("ResultsPublished", applied)
    joined = next(f"e{number}" for number, _, event, _ in decisions if event == "NodeJoined")
    follow("UnitsInstalled", follow("EpochCommitted", joined))


class Letters(Operator):
    """Counts words, and sends their letters to the next stage."""

    output_schema = "word string, count long"
    next_schema = "letter string"
    emits = frozenset({"next"})

    def initial_state(self) -> Counter[str]:
        return Counter()

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> list[Any]:
        words = rows["word"].to_pylist()
        state.value.update(words)
        counts = [{"word": word, "count": state.value[word]} for word in sorted(set(words))]
        return [ToNext([{"letter": letter} for word in words for letter in word]), ToSink(counts)]

    def part(self, state: State, hashes: NDArray[np.int64]) -> dict[str, int]:
        return {word: state.value.pop(word) for word in self.select_keys(state.value, hashes)}

    def join(self, state: State, part: dict[str, int]) -> None:
        state.value.update(part)


def rekey(job: Job, stage: int, tasks: dict[str, int | None]) -> None:
    """Move keys to the guests of tasks and wait until they have moved; an idle stream is enough."""
    targets = KeyTargets.from_mapping(stage, {hash_key(key): task for key, task in tasks.items()})
    request_id = f"{stage} {tasks}"
    job._driver.post(events.RekeyRequested(request_id, (targets,), (1.0,)))

    def is_over(view: JobView) -> bool:
        return view.rekeying is not None and view.rekeying.id == request_id and view.rekeying.is_over

    job._driver.views.wait_for(is_over, 30.0, "the keys to move")


def test_keys_move_to_the_guests_of_other_tasks_and_on_with_these() -> None:
    stages = [Stage(Letters(), "word", grouping="table"), Stage(CountByKey(), "letter", grouping="table")]
    source = TableSource(LocalNetwork(), BATCHES)
    with local_run(source, key="word", operator=stages, secret=SECRET, settings=FAST) as job:
        job.process_all_available()
        rekey(job, 0, {"a": 5})
        rekey(job, 1, {"a": 5, "e": 5})
        by_word, by_letter = job._driver.view.routing.groupings.by_stage
        assert by_word == TableGrouping(KeyTable.from_entries({hash_key("a"): 5}))
        assert by_letter == TableGrouping(KeyTable.from_entries({hash_key("a"): 5, hash_key("e"): 5}))
        source.append(pa.table({"word": ["ee", "e", "a"]}))
        job.process_all_available()
        letters = {**counts_of(4), "a": counts_of(4)["a"] + 1, "e": 3}
        job.snapshot()
        saved = job._driver.view.manifest.units
        guests = {unit for unit, state in saved.items() if unit.guests and state is not None}
        assert guests == {UnitId(0, 5, guests=True), UnitId(1, 5, guests=True)}
        for nodes in (3, 1):
            job.scale(nodes).wait(30)
            assert {letter: job.state(letter, "CountByKey") for letter in "abcde"} == letters
            assert job.state("ee", "Letters") == 1
        rekey(job, 1, {"a": None})
        assert {letter: job.state(letter, "CountByKey") for letter in "abcde"} == letters


def test_keys_that_move_before_the_first_rows_cost_none_of_them() -> None:
    source = TableSource(LocalNetwork(), ())
    stage = Stage(CountByKey(), "word", grouping="table")
    with local_run(source, key="word", operator=stage, schema=BATCHES[0].schema, secret=SECRET, settings=FAST) as job:
        rekey(job, 0, {"a": 5, "b": 2})
        assert job.batches()[0] == 0  # a tick
        for rows in BATCHES:
            source.append(rows)
        job.process_all_available()
        assert {word: job.state(word) for word in "abcd"} == counts_of(4)


class Impatient(Operator):
    """Sets a timer that is always due."""

    def handle_batch(self, _rows: pa.Table, _state: State, context: Context) -> None:
        context.set_timer(0, "processing")

    def handle_timer(self, _timer: Timer, _state: State, context: Context) -> None:
        context.set_timer(0, "processing")


@pytest.mark.parametrize("empty_batches", ["on", "off"])
def test_a_due_timer_makes_an_empty_batch_of_an_idle_stream_unless_that_is_off(empty_batches: str) -> None:
    settings = FAST | {"empty_batches": empty_batches}
    with local_run(BATCHES, key="word", operator=Impatient(), secret=SECRET, settings=settings) as job:
        job.process_all_available()
        deadline = Deadline(5.0 if empty_batches == "on" else 10 * FAST["heartbeat_seconds"])
        while job.batches()[0] < len(BATCHES) and deadline.left() > 0:
            time.sleep(0.01)
        assert (job.batches()[0] >= len(BATCHES)) == (empty_batches == "on")


def test_a_stage_whose_state_belongs_to_the_task_is_refused_before_anything_starts() -> None:
    class Newest(Operator):
        def handle_batch(self, rows: pa.Table, state: State, _: Context) -> None:
            state.value = rows

    source = TableSource(LocalNetwork(), BATCHES)
    threads = threading.active_count()
    with pytest.raises(IndivisibleState, match="stage 'Newest'") as refused:
        local_run(source, key="word", operator=Stage(Newest(), grouping="table"), secret=SECRET)
    assert (refused.value.stage, refused.value.operator) == ("Newest", "Newest")
    assert threading.active_count() <= threads  # those of jobs before it may still end
    local_run(source, key="word", operator=Stage(Newest()), secret=SECRET, settings=FAST).stop()


def test_a_batch_of_other_groupings_is_refused_at_once(job: Job) -> None:
    driver = job._driver
    before = driver.view.newest_batch
    time = BatchTime(before + 1, driver.view.latest_time.timestamp_ms)  # type: ignore[union-attr]
    deadline = Deadline(10.0)

    def check() -> None:
        assert deadline.left() > 0

    assert not driver.commit_batch(Batch(before + 1), (), time, None, 9, {}, check)
    assert driver.view.newest_batch == before


def test_a_query_waits_for_a_state_that_is_being_restored(job: Job, monkeypatch: Any) -> None:
    queries, asked = job._queries, 0
    ask = queries._ask

    def load(unit: Any, *query: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked < 4:
            raise StateUnavailable(unit.task, "node-1")
        return ask(unit, *query, **options)

    monkeypatch.setattr(queries, "_ask", load)
    assert job.state("a") == counts_of(4)["a"]
    assert asked == 4


def test_a_question_on_which_the_operator_fails_does_not_end_its_node() -> None:
    class Silent(CountByKey):
        def lookup(self, *_: Any) -> int:
            raise ZeroDivisionError

    with local_run(BATCHES, key="word", operator=Silent(), secret=SECRET, settings=FAST) as job:
        job.process_all_available()
        with pytest.raises(QueryFailed, match=r"stage '.*' failed to answer .*ZeroDivisionError"):
            job.state("a")
        assert job.scale(1).wait(30)
        assert job.status().losses == 0
