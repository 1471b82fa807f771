"""Learning on Spark is learning: the same matrices, with the same origin, from the same files."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mdp.errors import DuplicatedTime, GapInLog, InvalidLog, SingleState
from mdp.learning import (
    Log,
    Recipe,
    generate_tweet_volume,
    learn_from_log,
    learn_hourly_from_log,
    load_matrix,
    read_log,
)
from mdp.spark import learn_job
from mdp.spark.learning import SparkLearner
from tests.mdp.instances import write_csv
from tests.spark.jobs import changed_conf

pytestmark = pytest.mark.spark
LONG = pytest.mark.long

LOG = generate_tweet_volume(seed=11, days=21)
RNG = np.random.default_rng(5)
RANGE: dict[str, Any] = {"low": 8, "high": 16}


def write_log(folder: Path, log: Log, *, parts: int = 1, kind: str = "csv") -> list[Path]:
    """The log in some files, in an order that is not that of time."""
    paths = []
    for number in reversed(range(parts)):
        part = Log(log.times[number::parts], log.values[number::parts])
        path = folder / f"part-{number}.{kind}"
        if kind == "csv":
            write_csv(part, path)
        else:
            pq.write_table(pa.table({"timestamp": pa.array(part.times), "value": part.values}), path)
        paths.append(path)
    return paths


def learn_both_ways(spark: SparkSession, paths: Sequence[Path], recipe: Recipe, **columns: Any) -> tuple[Any, Any]:
    names = columns or {"load_column": "value"}
    return SparkLearner(spark, paths, recipe, **names).matrix(), learn_from_log(read_log(paths, **names), recipe)


@pytest.mark.parametrize(
    ("choices", "parts", "kind"),
    [
        ({}, 1, "csv"),
        ({"quantiles": (0.01, 0.99), "smoothing": 1.5}, 3, "parquet"),
        ({"hysteresis": 0.4, "rounding": "up", "window_seconds": 1800, "repeats": "rebalance"}, 2, "csv"),
        pytest.param({"combine": "mean", "hysteresis": 0.2, "quantiles": (0.0, 0.95)}, 2, "parquet", marks=LONG),
        pytest.param({"combine": "max", "window_seconds": 5400, "quantiles": (0.05, 0.9)}, 1, "parquet", marks=LONG),
    ],
)
def test_spark_learns_what_one_process_learns(
    spark: SparkSession, tmp_path: Path, choices: dict[str, Any], parts: int, kind: str
) -> None:
    paths = write_log(tmp_path, LOG, parts=parts, kind=kind)
    on_spark, here = learn_both_ways(spark, paths, Recipe(**RANGE, **choices))
    assert on_spark == here
    assert here.observations > 50


def test_loads_that_are_no_whole_numbers_give_the_same_matrix(spark: SparkSession, tmp_path: Path) -> None:
    noisy = Log(LOG.times, LOG.values * RNG.random(len(LOG)) / 3)
    (path,) = write_log(tmp_path, noisy, kind="parquet")
    on_spark, here = learn_both_ways(spark, [path], Recipe(**RANGE, quantiles=(0.02, 0.98)))
    assert np.array_equal(on_spark.observed, here.observed)


@pytest.mark.parametrize("gaps", [pytest.param("hold", marks=LONG), "split"])
def test_gaps_and_duplicates_are_treated_alike(spark: SparkSession, tmp_path: Path, gaps: str) -> None:
    keep = np.ones(len(LOG), bool)
    keep[500:570] = keep[2000:2013] = keep[4000:4400] = False
    times, values = LOG.times[keep], LOG.values[keep]
    again = RNG.integers(0, len(times), 200)
    broken = Log(np.concatenate([times, times[again]]), np.concatenate([values, values[again] + 3]))
    paths = write_log(tmp_path, broken, parts=2)
    for duplicates in ("sum", "last"):
        recipe = Recipe(**RANGE, quantiles=(0.01, 0.99), gaps=gaps, duplicates=duplicates, hysteresis=0.1)
        on_spark, here = learn_both_ways(spark, paths, recipe)
        assert on_spark == here


def test_hours_are_the_same_too(spark: SparkSession, tmp_path: Path) -> None:
    paths = write_log(tmp_path, LOG)
    recipe = Recipe(**RANGE, quantiles=(0.01, 0.99), repeats="rebalance")
    on_spark = SparkLearner(spark, paths, recipe, load_column="value").hourly()
    assert on_spark == learn_hourly_from_log(read_log(paths, load_column="value"), recipe)
    assert on_spark.learned_hours


@pytest.mark.parametrize("window", [pytest.param(None, marks=LONG), 7200.0])
def test_node_counts_are_learned_alike(spark: SparkSession, tmp_path: Path, window: float | None) -> None:
    path = tmp_path / "nodes.parquet"
    nodes = 8 + RNG.integers(0, 5, 300)
    pq.write_table(pa.table({"at": np.sort(RNG.integers(0, 10**6, 300)), "n.nodes": nodes}), path)
    names = {"time_column": "at", "nodes_column": "n.nodes"}
    for repeats in ("ignore", "rebalance"):
        recipe = Recipe(window_seconds=window, repeats=repeats, gaps="hold", duplicates="last")
        on_spark, here = learn_both_ways(spark, [path], recipe, **names)
        assert on_spark == here


def test_times_mean_the_same_whatever_the_zone_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    """Among them an hour that Berlin does not have, and times with a zone of their own."""
    lines = [f"2015-03-{day:02d} {hour:02d}:15:00" for day in (28, 29) for hour in range(24)]
    lines[30] = "2015-03-29T08:15:00+02:00"
    lines[31] = str(np.datetime64(lines[31]).astype("datetime64[s]").astype(int))
    path = tmp_path / "log.csv"
    path.write_text("timestamp,value\n" + "".join(f"{at},{i * i % 17}\n" for i, at in enumerate(lines)))
    with changed_conf(spark, spark_sql_session_timeZone="Europe/Berlin"):
        on_spark, here = learn_both_ways(spark, [path], Recipe(**RANGE))
    assert on_spark == here
    assert here.origin["counts"] == 48


@pytest.mark.parametrize(
    ("lines", "error", "says"),
    [
        ([], InvalidLog, "empty"),
        (["2015-03-01 00:00:00,1", "noon,1"], InvalidLog, "the time 'noon'"),
        (["2015-03-01 00:00:00,1", ",1"], InvalidLog, "no time"),
        (["2015-03-01 00:00:00,many"], InvalidLog, "the value 'many'"),
        (["2015-03-01 00:00:00,"], InvalidLog, "no value"),
        (["2015-03-01 00:00:00,-3"], InvalidLog, "the value -3"),
        (["2015-03-01 00:00:00,nan"], InvalidLog, "the value nan"),
        (["2015-03-01 00:00:00,1", "2015-03-01 00:00:00,1"], DuplicatedTime, "2015-03-01T00:00:00"),
        (
            ["2015-03-01 00:00:00,1", "2015-03-01 03:00:00,2", "2015-03-01 06:00:00,2"],
            GapInLog,
            "4 empty windows in total",
        ),
        (["2015-03-01 00:00:00,1", "2015-03-01 01:00:00,1"], InvalidLog, "nothing to scale"),
        (["2015-03-01 00:10:00,1", "2015-03-01 00:20:00,2"], InvalidLog, "no whole window"),
    ],
)
def test_spark_refuses_what_one_process_refuses(
    spark: SparkSession, tmp_path: Path, lines: list[str], error: type[InvalidLog], says: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["timestamp,value", *lines, ""]))
    with pytest.raises(error, match=says) as on_spark:
        SparkLearner(spark, [path], Recipe(**RANGE), load_column="value").matrix()
    with pytest.raises(error, match=says) as here:
        learn_from_log(read_log(path, load_column="value"), Recipe(**RANGE))
    assert type(on_spark.value) is type(here.value) is error


def test_bad_node_counts_and_columns_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    for nodes, error, says in ((8.5, InvalidLog, "whole number of nodes"), (8, SingleState, "never leaves 8")):
        path.write_text(f"timestamp,nodes\n2015-03-01,8\n2015-03-02,{nodes}\n")
        with pytest.raises(error, match=says):
            SparkLearner(spark, [path], Recipe(), nodes_column="nodes").matrix()
    with pytest.raises(InvalidLog, match="no column 'load'"):
        SparkLearner(spark, [path], Recipe(**RANGE), load_column="load").matrix()
    for nowhere in (tmp_path / "nowhere.csv", (tmp_path / "nowhere.csv").as_uri()):
        with pytest.raises(InvalidLog, match="there is no log at"):
            SparkLearner(spark, [nowhere], Recipe(**RANGE), load_column="value").matrix()


def test_nothing_stays_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    SparkLearner(spark, write_log(tmp_path, LOG), Recipe(**RANGE), load_column="value").matrix()
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0


@pytest.mark.usefixtures("spark_of_programs")
@pytest.mark.parametrize("in_process", [True, pytest.param(False, marks=LONG)])
def test_the_job_for_spark_submit_learns_and_saves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_process: bool
) -> None:
    (path,) = write_log(tmp_path, LOG)
    words = ["--master", "local[2]", "--input", str(path), "--load-column", "value", "--low", "8", "--high", "16"]
    words += ["--quantiles", "0.01", "0.99", "--output", str(tmp_path / "matrix.json")]
    if in_process:
        learn_job.main(words)
        output = capsys.readouterr().out
    else:
        command = [sys.executable, str(learn_job.__file__), *words]
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=180).stdout  # noqa: S603
    assert "migrations seen" in output
    recipe = Recipe(**RANGE, quantiles=(0.01, 0.99))
    assert load_matrix(tmp_path / "matrix.json") == learn_from_log(read_log([path], load_column="value"), recipe)
