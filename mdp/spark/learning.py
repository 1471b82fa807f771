"""A transition matrix from log files of any size: windows, node counts and transitions as Spark frames.

What comes out is what `mdp.learning` makes of the same files. Only windows, which are few, and then kinds of
transitions, which are fewer, are ever in one place.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from mdp.learning.hourly import HourlyMatrices
from mdp.learning.logs import Ints
from mdp.learning.matrices import hourly_of, matrix_of
from mdp.learning.node_counts import origin_of
from mdp.learning.reading import source_of, which_column
from mdp.learning.recipe import Recipe
from mdp.learning.scaling import Scaling, steadied
from mdp.learning.transitions import Transitions, span
from mdp.learning.windows import width_of
from mdp.matrix import TransitionMatrix
from mdp.spark.log_files import records
from mdp.spark.log_windows import check_moments, combined, mended, moments, one_run

_HOUR, _DAY = 3_600_000_000, 86_400_000_000  # microseconds


@dataclass(frozen=True)
class SparkLearner:
    """Learns from files what `mdp.learning.learn_from` and `learn_hourly_from` learn from a log."""

    spark: SparkSession
    paths: Sequence[str | Path]
    recipe: Recipe
    time_column: str = "timestamp"
    load_column: str | None = None
    nodes_column: str | None = None

    def matrix(self) -> TransitionMatrix:
        return matrix_of(self.transitions(), self.recipe.low, self.recipe.high, self.recipe.smoothing)

    def hourly(self) -> HourlyMatrices:
        return hourly_of(self.transitions(), self.recipe.low, self.recipe.high, self.recipe.smoothing)

    def transitions(self) -> Transitions:
        """One pass over the files, then some over what is left of them."""
        holds, value_column = which_column(self.load_column, self.nodes_column)
        recipe = self.recipe.for_loads() if holds == "load" else self.recipe.for_nodes()
        rows = records(self.spark, [str(path) for path in self.paths], self.time_column, value_column)
        once = moments(rows, recipe, holds)
        source = source_of(self.paths)
        if recipe.window_seconds is None:
            with _kept(once):
                check_moments(once, rows, recipe, holds)
                counts = once.select("at", F.col("value").cast("long").alias("nodes"), one_run("at").alias("run"))
                return _transitions(counts, recipe.repeats, origin_of(source, holds, recipe, None))
        with _kept(combined(once, recipe)) as rough, _kept(mended(rough, rows, recipe, holds)) as windows:
            scaling = _scaling(windows, recipe) if holds == "load" else None
            with _kept(_counts(windows, recipe, scaling)) as counts:
                return _transitions(counts, recipe.repeats, origin_of(source, holds, recipe, scaling))


@contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    """In memory as long as it is used."""
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
    at = (F.col("number") * width_of(recipe)).alias("at")
    if scaling is None:
        return windows.select(at, F.col("value").cast("long").alias("nodes"), "run")

    def counted(run: pa.Table) -> pa.Table:
        ordered = run.sort_by("at")
        needed = scaling.nodes(np.asarray(ordered["value"]))
        nodes = steadied(needed, recipe.rounding, recipe.hysteresis)
        return pa.table({"at": ordered["at"], "nodes": nodes, "run": ordered["run"]})

    return (
        windows.select(at, "value", F.col("run").cast("long"))
        .groupBy("run")
        .applyInArrow(counted, "at long, nodes long, run long")
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
