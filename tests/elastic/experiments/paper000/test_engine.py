"""The experiments on the engine: every strategy runs, what it measures is written, and wrong results end the run."""

import csv
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from elastic.experiments import ExperimentResult, run_experiments
from elastic.experiments.engine_job import WrongResults
from elastic.experiments.paper000.engine import ENGINE_EXPERIMENTS, ENGINE_QUICK, EngineLab
from elastic.experiments.paper000.engine.lab import apply
from elastic.experiments.paper000.engine.query import QueryRow
from elastic.experiments.paper000.engine.query import format_rows as format_query
from elastic.experiments.paper000.engine.scale import HASH, IDEAL, TASKS
from elastic.job.job import Job
from examples.skewed_words.application import SkewedWords

REBALANCED = [one for one in ENGINE_QUICK.strategies if one not in (HASH, IDEAL)]


class Applied:
    """Counts the rebalances of each strategy, and moves nothing."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, float]] = Counter()

    def __call__(self, job: Job, strategy: str, theta: float, stages: Sequence[str]) -> None:
        assert stages
        assert job.status().state == "running"
        self.calls[strategy, theta] += 1


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, ExperimentResult], Applied]:
    applied = Applied()
    folder = tmp_path_factory.mktemp("engine")
    results = run_experiments(ENGINE_EXPERIMENTS, EngineLab(ENGINE_QUICK, apply=applied), folder)
    return {result.name: result for result in results}, applied


@pytest.mark.parametrize("name", ENGINE_EXPERIMENTS)
def test_every_experiment_writes_a_table_and_a_picture(
    quick: tuple[dict[str, ExperimentResult], Applied], name: str
) -> None:
    result = quick[0][name]
    assert result.picture.read_bytes().startswith(b"\x89PNG")
    with result.csv.open(newline="") as file:
        rows = list(csv.DictReader(file))
    strategies = {*ENGINE_QUICK.strategies, *([TASKS] if name == "figure16" else [])}
    assert {row["strategy"] for row in rows} == strategies
    assert all(float(row["rows_per_second"]) > 0 for row in rows)
    assert all(strategy in result.table for strategy in strategies)


def test_strategies_are_applied_after_every_interval_except_hash_and_ideal(
    quick: tuple[dict[str, ExperimentResult], Applied],
) -> None:
    scale = ENGINE_QUICK
    by_theta = len(scale.fluctuations) * scale.intervals + 2 * scale.scale_out_intervals
    expected = {(one, scale.theta): by_theta for one in REBALANCED}
    expected |= {(one, theta): 2 * scale.intervals for theta in scale.thetas for one in REBALANCED}
    for theta in scale.query_thetas:
        for one in scale.query_strategies:
            expected[one, theta] = expected.get((one, theta), 0) + scale.query_intervals
    assert quick[1].calls == expected


def test_a_node_joins_after_the_interval_of_the_scale(quick: tuple[dict[str, ExperimentResult], Applied]) -> None:
    rows = quick[0]["figure15"].rows
    nodes = {row.interval: row.nodes for row in rows if row.strategy == HASH}
    assert nodes == {0: ENGINE_QUICK.nodes, 1: ENGINE_QUICK.nodes + 1, 2: ENGINE_QUICK.nodes + 1}


def test_ideal_has_as_many_rows_of_uniform_keys() -> None:
    lab = EngineLab(ENGINE_QUICK)
    skewed, ideal = lab.words(HASH, 1.0), lab.words(IDEAL, 1.0)
    rows = [[one.batch(number)["word"] for number in range(40)] for one in (skewed, ideal)]
    assert [sum(map(len, words)) for words in rows] == [40 * ENGINE_QUICK.rows_per_batch] * 2
    counts = [Counter(word for words in batches for word in words.to_pylist()) for batches in rows]
    heaviest = [max(one.values()) for one in counts]
    assert heaviest[0] > 2 * heaviest[1]


def test_a_rebalance_moves_tasks_or_the_keys_of_each_stage() -> None:
    asked: list[dict[str, Any]] = []

    class Asked:
        migration = None

        def rebalance(self, **how: Any) -> None:
            asked.append(how)

    job: Any = Asked()
    apply(job, TASKS, 0.1, ["one", "other"])
    apply(job, "knap", 0.2, ["one", "other"])
    keys = {"level": "keys", "theta": 0.2, "strategy": "knap", "queue": True}
    assert asked == [{"level": "tasks", "tau": 0.1}, {**keys, "stage": "one"}, {**keys, "stage": "other"}]


def test_the_throughput_of_a_query_is_that_of_all_intervals_but_the_first() -> None:
    speeds = {"hash": [9.0, 100.0, 100.0], "ideal": [9.0, 200.0, 200.0], "knap": [9.0, 100.0, 300.0]}
    rows = [
        QueryRow(one, 0.1 if one == "knap" else None, number, number // 2, 0.0, speed, 1.5, 7)
        for one, series in speeds.items()
        for number, speed in enumerate(series)
    ]
    [line] = [line.split() for line in format_query(rows).splitlines() if line.startswith("knap")]
    assert line == ["knap,", "theta", "0.1", "150", "150", "1.50", "75", "1.50", "7"]


def test_a_run_with_wrong_results_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = EngineLab(ENGINE_QUICK)
    application = lab.words(HASH, 1.0)
    assert isinstance(application, SkewedWords)
    changed = pa.table({"window": [0], "word": ["none of them"], "count": [1]})
    monkeypatch.setattr("examples.harness.results.Results.take", lambda _results: changed)
    with pytest.raises(WrongResults, match="differ"):
        lab.run(application, HASH, 0.1, intervals=1)
