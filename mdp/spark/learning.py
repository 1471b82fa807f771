"""Learn a transition matrix from log files of any size: windows, node counts and transitions as Spark frames.

The result equals that of `mdp.learning` for the same files. Only windows, which are few, and counts of transitions,
which are fewer, are ever collected.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - the usual alias

from mdp.learning.hourly import HourlyMatrices
from mdp.learning.log_files import choose_column, format_source
from mdp.learning.logs import Ints
from mdp.learning.matrices import build_hourly_matrices, build_matrix
from mdp.learning.node_counts import describe_origin
from mdp.learning.recipe import Recipe
from mdp.learning.scaling import Scaling, apply_hysteresis
from mdp.learning.transitions import Transitions, span
from mdp.learning.windows import window_width
from mdp.matrix import TransitionMatrix
from mdp.spark.log_files import read_records
from mdp.spark.log_windows import check_moments, combine_windows, fill_gaps, merge_moments, single_run

_HOUR, _DAY = 3_600_000_000, 86_400_000_000  # microseconds


@dataclass(frozen=True)
class SparkLearner:
    """Learns from files what `mdp.learning.learn_from_log` and `learn_hourly_from_log` learn from a log."""

    spark: SparkSession
    paths: Sequence[str | Path]
    recipe: Recipe
    time_column: str = "timestamp"
    load_column: str | None = None
    nodes_column: str | None = None

    def matrix(self) -> TransitionMatrix:
        return build_matrix(self.transitions(), self.recipe.low, self.recipe.high, self.recipe.smoothing)

    def hourly(self) -> HourlyMatrices:
        return build_hourly_matrices(self.transitions(), self.recipe.low, self.recipe.high, self.recipe.smoothing)

    def transitions(self) -> Transitions:
        """Count transitions: one pass over the files, then some over their windows."""
        holds, value_column = choose_column(self.load_column, self.nodes_column)
        recipe = self.recipe.for_loads() if holds == "load" else self.recipe.for_nodes()
        rows = read_records(self.spark, [str(path) for path in self.paths], self.time_column, value_column)
        once = merge_moments(rows, recipe, holds)
        source = format_source(self.paths)
        if recipe.window_seconds is None:
            with _persist(once):
                check_moments(once, rows, recipe, holds)
                counts = once.select("at", F.col("value").cast("long").alias("nodes"), single_run("at").alias("run"))
                return _transitions(counts, recipe.repeats, describe_origin(source, holds, recipe, None))
        with (
            _persist(combine_windows(once, recipe)) as rough,
            _persist(fill_gaps(rough, rows, recipe, holds)) as windows,
        ):
            scaling = _scaling(windows, recipe) if holds == "load" else None
            with _persist(_counts(windows, recipe, scaling)) as counts:
                return _transitions(counts, recipe.repeats, describe_origin(source, holds, recipe, scaling))


@contextmanager
def _persist(frame: DataFrame) -> Iterator[DataFrame]:
    """Persist a frame for the duration of the block."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def _scaling(windows: DataFrame, recipe: Recipe) -> Scaling:
    least, most = windows.agg(F.percentile("value", list(recipe.quantiles))).collect()[0][0]
    return Scaling(*recipe.range, least, most)


def _counts(windows: DataFrame, recipe: Recipe, scaling: Scaling | None) -> DataFrame:
    """`at`, `nodes` and `run`. Hysteresis goes from window to window, so every run is one task of the pure code."""
    at = (F.col("number") * window_width(recipe)).alias("at")
    if scaling is None:
        return windows.select(at, F.col("value").cast("long").alias("nodes"), "run")

    def count_nodes(run: pa.Table) -> pa.Table:
        ordered = run.sort_by("at")
        needed = scaling.nodes(np.asarray(ordered["value"]))
        nodes = apply_hysteresis(needed, recipe.rounding, recipe.hysteresis)
        return pa.table({"at": ordered["at"], "nodes": nodes, "run": ordered["run"]})

    return (
        windows.select(at, "value", F.col("run").cast("long"))
        .groupBy("run")
        .applyInArrow(count_nodes, "at long, nodes long, run long")
    )


def _transitions(counts: DataFrame, repeats: str, origin: Mapping[str, Any]) -> Transitions:
    """Neighbours by `lag`, counted by kind; see `mdp.learning.transitions`."""
    before = F.lag("nodes").over(_run_in_order())
    stays = counts
    if repeats == "ignore":
        stays = counts.withColumn("before", before).where(
            F.col("before").isNull() | (F.col("before") != F.col("nodes"))
        )
    began = F.lag("at").over(_run_in_order())
    hour = F.floor(F.pmod(began, F.lit(_DAY)) / _HOUR)
    pairs = stays.select(before.alias("before"), F.col("nodes").alias("after"), hour.alias("hour"))
    kinds = pairs.where(F.col("before").isNotNull()).groupBy("before", "after", "hour").count().collect()
    seen = counts.agg(
        F.min("nodes").alias("least"),
        F.max("nodes").alias("most"),
        F.min("at").alias("first"),
        F.max("at").alias("last"),
        F.count("at").alias("counts"),
    ).collect()[0]
    columns: dict[str, Ints] = {
        name: np.array([kind[name] for kind in kinds], np.int64) for name in ("before", "after", "hour", "count")
    }
    ends = np.array([seen["first"], seen["last"]], np.int64).view("datetime64[us]")
    return Transitions(
        columns["before"],
        columns["after"],
        columns["hour"],
        columns["count"],
        seen["least"],
        seen["most"],
        {**origin, **span(ends[0], ends[1], seen["counts"]), "repeats": repeats},
    )


def _run_in_order() -> WindowSpec:
    return Window.partitionBy("run").orderBy("at")
