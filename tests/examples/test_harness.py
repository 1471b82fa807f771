"""The harness runs an application in threads, checks every window, and reports what it measured."""

import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import elastic
from elastic.core.events import RekeyRequested
from elastic.errors import ElasticError
from elastic.operators import CountByKey
from elastic.routing import Groupings, KeyTable, KeyTargets, Routing, TableGrouping, hash_key
from examples.frequent_patterns.texts import make_vocabulary
from examples.harness import Application, RunSettings, Summary, WindowCheck, run_windows
from examples.harness.balance import ScaleStep, choose_measuring_settings, count_entries, measure_imbalance, rebalance
from examples.harness.local_source import run_in_threads
from examples.harness.report import format_verdict, format_window
from examples.harness.results import Results
from examples.harness.run import Window
from examples.self_join.__main__ import main as self_join
from examples.self_join.application import TradeSelfJoin
from examples.skewed_words.__main__ import main as skewed_words
from examples.skewed_words.application import SkewedWords
from examples.skewed_words.word_count import COUNT_SCHEMA
from examples.workloads import KeyStream, Pace, SkewedTexts, Trades, make_symbols
from migration import Assignment

PACE = Pace(rows_per_batch=60, every_ms=20, batches_per_interval=3)
NODES, TASKS = 2, 8


def words(**options: Any) -> SkewedWords:
    return SkewedWords(SkewedTexts(KeyStream(make_vocabulary(80), NODES, TASKS, 0.85, 1.0), PACE), PACE, **options)


def trades(**options: Any) -> TradeSelfJoin:
    return TradeSelfJoin(Trades(KeyStream(make_symbols(20), NODES, TASKS, 0.85, 1.0), PACE), 50, **options)


def run(application: Application, settings: RunSettings, *, paced: bool = True) -> Summary:
    results = Results(application)
    batches = settings.intervals * PACE.batches_per_interval
    with run_in_threads(application, results, batches=batches, paced=paced, nodes=NODES, tasks=TASKS) as stream:
        return run_windows(application, stream, results, settings)


@pytest.mark.parametrize("application", [words(), trades()])
def test_all_windows_are_right_while_the_job_scales(application: Application) -> None:
    steps = (ScaleStep(3, 0.1), ScaleStep(1, 0.3))
    rebalanced: list[str] = []
    summary = run(application, RunSettings(8, lambda job: rebalanced.append(job.name), steps))
    assert summary.is_right, format_verdict(summary)
    assert [window.number for window in summary.windows] == list(range(8))
    assert {window.rows for window in summary.windows} == {180}
    assert sum(window.check.results for window in summary.windows) > 100
    assert len({window.nodes for window in summary.windows}) > 1
    assert rebalanced == [application.name] * 8
    assert summary.rows == 7 * 180  # without the first window
    assert len(summary.latency_ms) == 21
    assert 0 < min(summary.latency_ms) < 10_000
    assert sum(window.seconds for window in summary.windows[1:]) == pytest.approx(summary.seconds, abs=0.5)


class KeyMover:
    """Moves some keys to other tasks or home, whenever it is called."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = keys
        self._chance = np.random.default_rng(0)
        self.calls = 0

    def __call__(self, job: elastic.Job) -> None:
        self.calls += 1
        moved = self._chance.choice(self._keys, 10, replace=False).tolist()
        tasks = [None if task == TASKS else int(task) for task in self._chance.integers(0, TASKS + 1, 10)]
        hashes = [hash_key(key, types=[pa.string()]) for key in moved]
        targets = KeyTargets.from_mapping(0, dict(zip(hashes, tasks, strict=True)))
        job._driver.post(RekeyRequested(f"move {self.calls}", (targets,), (1.0,)))
        # On a busy machine all other windows are there at once: only the first rekeying is sure to have time.
        deadline = time.monotonic() + 20
        while self.calls == 1 and not job.key_tables()[0].entries:
            assert time.monotonic() < deadline, "timed out after 20 s waiting for the first keys to move"
            time.sleep(0.01)


@pytest.mark.parametrize(("application", "names"), [(words(), make_vocabulary(80)), (trades(), make_symbols(20))])
@pytest.mark.parametrize("paced", [True, False])
def test_all_windows_are_right_while_keys_move(application: Application, names: pa.Array, paced: bool) -> None:
    mover = KeyMover(names.to_pylist())
    summary = run(application, RunSettings(8, mover, (ScaleStep(3, 0.1),)), paced=paced)
    assert summary.is_right, format_verdict(summary)
    assert mover.calls == 8
    assert summary.windows[-1].entries > 0


def test_a_stream_without_a_pace_takes_as_long_as_its_busiest_node() -> None:
    cost = 1_000.0
    summary = run(words(cost_microseconds=cost), RunSettings(3), paced=False)
    busiest = sum(window.imbalance * window.rows / NODES for window in summary.windows[1:]) * cost / 1e6
    assert summary.is_right
    assert 0.8 * busiest < summary.seconds < 3 * busiest + 1


class OtherWords(SkewedWords):
    """Repeats a batch instead of the fifth one, which has other words and as many."""

    def batch(self, number: int) -> pa.Table:
        rows = super().batch(number)
        return rows if number != 4 else rows.set_column(0, "word", super().batch(0)["word"])


def test_a_window_of_other_rows_is_wrong() -> None:
    results = Results(words())
    sent = OtherWords(words().texts, PACE)
    with run_in_threads(sent, results, batches=9, paced=False, nodes=NODES, tasks=TASKS) as stream:
        summary = run_windows(words(), stream, results, RunSettings(3))
    assert [window.check.difference is None for window in summary.windows] == [True, False, True]
    assert not summary.is_right
    assert format_verdict(summary).startswith("WRONG: 1 of 3 windows differ, first window 1")


def test_results_that_are_delivered_again_are_kept_once() -> None:
    results = Results(words())
    rows = pa.Table.from_pylist([{"window": 0, "word": "a", "count": 1}], COUNT_SCHEMA)
    assert results.open("") is None
    for batch in (0, 0, 2):
        results.deliver(batch, rows)
        results.deliver(batch + 1, pa.table({}))
    assert (results.open(""), results.last_batch, list(results.published)) == (4, 3, [0, 1])
    assert results.take().num_rows == 2
    assert results.take().num_rows == 0


def test_imbalance_counts_the_rows_of_guests_where_the_table_leads_them() -> None:
    assignment = Assignment.even(TASKS, 2)
    keys = pa.chunked_array([["a"] * 6 + ["b"] * 2])
    owners = {word: assignment.owners[hash_key(word, types=[pa.string()]) % TASKS] for word in "ab"}
    routing = Routing(assignment, Groupings.of_kinds(TASKS, ["table"]))
    assert measure_imbalance(routing, keys) == (2.0 if owners["a"] == owners["b"] else 1.5)
    target = {"node-1": 7, "node-2": 0}[owners["b"]]
    table = TableGrouping(KeyTable.from_entries({hash_key("a", types=[pa.string()]): target}))
    moved = routing.with_groupings([table], 1)
    assert measure_imbalance(moved, keys) == 1.5
    assert (count_entries(routing), count_entries(moved)) == (0, 1)


def test_a_job_is_rebalanced_only_while_nothing_moves() -> None:
    batches = [pa.table({"word": [f"w{number}" for number in range(50)]})]
    with elastic.local_run(batches, key="word", operator=CountByKey(), tasks=8, nodes=2) as job:
        job.process_all_available()
        assert not rebalance(job, "none", 0.1)
        assert rebalance(job, "tasks", 0.1)
        assert job.migration is not None
        job.migration.wait(10)
        assert rebalance(job, "tasks", 0.1)
        job.migration.wait(10)


@pytest.mark.parametrize("application", [words(cost_microseconds=200), trades(cost_microseconds=200)])
def test_all_windows_are_right_while_keys_are_rebalanced(application: Application) -> None:
    results, requested = Results(application), []
    options = {"nodes": NODES, "tasks": TASKS, "settings": choose_measuring_settings(0.1)}
    with run_in_threads(application, results, batches=30, paced=True, **options) as stream:
        settings = RunSettings(10, lambda job: requested.append(rebalance(job, "keys", 0.0)))
        summary = run_windows(application, stream, results, settings)
    assert summary.is_right, format_verdict(summary)
    assert any(requested)
    assert any(window.entries > 0 for window in summary.windows)  # a rebalance may clear the table again


def test_nothing_is_rebalanced_before_keys_are_measured() -> None:
    with elastic.local_run([], inputs=words().inputs(), operator=words().stages(), tasks=8) as job:
        assert not rebalance(job, "keys", 0.1)


@pytest.mark.parametrize("text", ["", "6", "@", "6@", "0@3", "6@-1", "x@3"])
def test_an_invalid_scale_step_is_refused(text: str) -> None:
    ended = CliRunner().invoke(skewed_words, ["--local", "--scale", text])
    assert ended.exit_code == 2
    assert "expected NODES@SECONDS" in ended.output


def test_a_scale_step_has_nodes_and_seconds() -> None:
    assert ScaleStep.parse("6@1.5") == (6, 1.5)


@pytest.mark.parametrize("level", ["none", "tasks", "keys", "auto"])
@pytest.mark.parametrize(("command", "own"), [(skewed_words, ["--words", "60"]), (self_join, ["--symbols", "20"])])
def test_a_run_prints_every_window_and_a_summary(command: Any, own: list[str], level: str) -> None:
    options = ["--local", "--nodes", "2", "--tasks", "8", "--seconds", "0.4", "--interval", "0.1", "--every", "50"]
    ended = CliRunner().invoke(command, [*options, "--rate", "2000", "--balance", level, *own])
    assert ended.exit_code == 0, ended.output
    assert len(re.findall("equal to the batch computation", ended.output)) == 4
    assert "p99 ms" in ended.output
    assert re.search(r"exact: the [\d,]+ results of 4 windows equal those of a batch computation", ended.output)


def test_texts_of_a_file_are_counted(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("the quick fox\nthe lazy dog\n")
    options = [
        "--local",
        "--seconds",
        "0.2",
        "--interval",
        "0.1",
        "--every",
        "50",
        "--texts",
        str(tmp_path / "texts.txt"),
    ]
    ended = CliRunner().invoke(skewed_words, options)
    assert ended.exit_code == 0, ended.output
    assert "5 results" in ended.output


def test_only_a_local_stream_can_be_without_a_pace() -> None:
    ended = CliRunner().invoke(skewed_words, ["--unpaced"])
    assert (ended.exit_code, "--unpaced needs --local" in ended.output) == (2, True)


def test_a_wrong_window_says_how_it_differs() -> None:
    window = Window(3, 100, WindowCheck(7, "1 missing: 'a'"), 1.5, 2, 0, 1.0)
    assert "WRONG: 1 missing: 'a'" in format_window(window)


def test_a_stream_that_stalls_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.harness.run._STALLED_SECONDS", 0.2)
    results = Results(words())
    began = time.monotonic()
    with (
        run_in_threads(words(), results, batches=1, paced=False, nodes=NODES, tasks=TASKS) as stream,
        pytest.raises(ElasticError, match="without a published batch"),
    ):
        run_windows(words(), stream, results, RunSettings(1))
    assert time.monotonic() - began < 5
    assert np.isfinite(stream.arrivals()).all()
