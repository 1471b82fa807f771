"""`mdp.learning.windows` on Spark: the same windows, from logs of any size."""

import numpy as np
from pyspark.sql import Column, DataFrame, Row, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - the usual alias

from mdp.errors import DuplicatedTime, InvalidLog
from mdp.learning.log_files import unreadable_error
from mdp.learning.logs import bad_value_error, format_time
from mdp.learning.recipe import Recipe
from mdp.learning.windows import check_any_window, gap_error, slack, window_width


def merge_moments(rows: DataFrame, recipe: Recipe, holds: str) -> DataFrame:
    """One row a moment: `at`, `value`, how many `records`, and how many of them are `bad`.

    Only numbers are aggregated: Spark would sort all records to find the least of a struct.
    """
    value = {"sum": F.sum("value"), "last": F.max_by("value", "place"), "error": F.max("value")}[recipe.duplicates]
    bad = F.count(F.when(_is_wrong(holds), 1))
    return rows.groupBy("at").agg(value.alias("value"), F.count(F.lit(1)).alias("records"), bad.alias("bad"))


def combine_windows(once: DataFrame, recipe: Recipe) -> DataFrame:
    """One row a window: its `number`, its `value`, what filling gaps needs, and its faults."""
    width = window_width(recipe)
    start = F.col("at") - F.pmod("at", F.lit(width))
    value = {
        "sum": F.sum("value"),
        "mean": F.sum("value") / F.count("value"),
        "max": F.max("value"),
        "last": F.max_by("value", "at"),
    }[recipe.combine or "last"]
    first, last = F.min("at").alias("first"), F.max("at").alias("last")
    number = (start / width).cast("long").alias("number")
    return once.groupBy(number).agg(value.alias("value"), F.count("at").alias("moments"), first, last, *_faults())


def fill_gaps(windows: DataFrame, rows: DataFrame, recipe: Recipe, holds: str) -> DataFrame:
    """`number`, `value` and `run`: gaps and duplicates are handled, or raise an error, as the recipe says.

    The records are read again only to name a bad one.
    """
    seen = windows.agg(
        F.sum("moments").alias("moments"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.sum("twice").alias("twice"),
        F.min("first_twice").alias("first_twice"),
        F.sum("bad").alias("bad"),
    ).collect()[0]
    _check(seen, rows, recipe, holds)
    width = window_width(recipe)
    if recipe.combine == "sum":
        windows = _whole(windows, slack(seen["first"], seen["last"], seen["moments"]), width)
    return _fill_or_refuse_gaps(windows.select("number", "value"), width, recipe.gaps)


def check_moments(once: DataFrame, rows: DataFrame, recipe: Recipe, holds: str) -> None:
    """Raise what `fill_gaps` would raise, where there are no windows."""
    seen = once.agg(F.count("at").alias("moments"), *_faults()).collect()[0]
    _check(seen, rows, recipe, holds)


def single_run(column: str) -> Column:
    """0 for every row, but not a literal 0: Spark would drop that from a partitioning and warn that there is none."""
    return F.pmod(column, F.lit(1))


def _faults() -> list[Column]:
    """Aggregates of the faults in a set of moments."""
    twice = F.col("records") > 1
    return [
        F.count(F.when(twice, 1)).alias("twice"),
        F.min(F.when(twice, F.col("at"))).alias("first_twice"),
        F.sum("bad").alias("bad"),
    ]


def _check(seen: Row, rows: DataFrame, recipe: Recipe, holds: str) -> None:
    """Raise what the reader without Spark would raise."""
    if seen["bad"]:
        raise _record_error(rows.where(_is_wrong(holds)).orderBy("place").limit(1).collect()[0], holds)
    if not seen["moments"]:
        raise InvalidLog("the log is empty. Give one with records.")
    if seen["twice"] and recipe.duplicates == "error":
        raise DuplicatedTime(_text(seen["first_twice"]), seen["twice"])


def _record_error(bad: Row, holds: str) -> InvalidLog:
    file = bad["place"]["file"]
    if bad["at"] is None:
        return unreadable_error("time", bad["time_text"], file)
    if bad["value"] is None:
        return unreadable_error("value", bad["value_text"], file)
    return bad_value_error(holds, bad["value"], _text(bad["at"]), f"a record in {file}")


def _is_wrong(holds: str) -> Column:
    return F.col("at").isNull() | F.col("value").isNull() | ~_is_possible(F.col("value"), holds)


def _is_possible(value: Column, holds: str) -> Column:
    finite = ~F.isnan(value) & (value < float("inf"))
    return finite & (value >= 0) if holds == "load" else finite & (value >= 1) & (value == F.floor(value))


def _whole(windows: DataFrame, allowed: float, width: int) -> DataFrame:
    """The windows that the log covers completely; the neighbours' numbers show its gaps."""
    number = F.col("number")
    after_gap = F.coalesce(number - F.lag("number").over(_in_order()) > 1, F.lit(True))
    before_gap = F.coalesce(F.lead("number").over(_in_order()) - number > 1, F.lit(True))
    late = F.col("first") - number * width > allowed
    early = (number + 1) * width - F.col("last") > allowed
    return windows.withColumn("partial", (after_gap & late) | (before_gap & early)).where(~F.col("partial"))


def _fill_or_refuse_gaps(windows: DataFrame, width: int, gaps: str) -> DataFrame:
    before = F.lag("number").over(_in_order())
    stepped = windows.withColumn("before", before).withColumn("step", F.coalesce(F.col("number") - before, F.lit(1)))
    jump = F.min(F.when(F.col("step") > 1, F.struct("before", "number")))
    seen = stepped.agg(
        F.count("number").alias("windows"),
        F.min("number").alias("first"),
        F.max("number").alias("last"),
        jump.alias("jump"),
    ).collect()[0]
    check_any_window(seen["windows"], width)
    if seen["jump"] and gaps == "error":
        empty = seen["last"] - seen["first"] + 1 - seen["windows"]
        raise gap_error(seen["jump"]["before"], seen["jump"]["number"], empty, width)
    if gaps == "hold":
        return _hold_values(windows, seen["first"], seen["last"])
    run = F.sum(F.when(F.col("step") > 1, 1).otherwise(0)).over(_in_order())
    return stepped.select("number", "value", run.alias("run"))


def _hold_values(windows: DataFrame, first: int, last: int) -> DataFrame:
    numbers = windows.sparkSession.range(first, last + 1).withColumnRenamed("id", "number")
    filled = F.last("value", ignorenulls=True).over(_in_order())
    return numbers.join(windows, "number", "left").select(
        "number", filled.alias("value"), single_run("number").alias("run")
    )


def _in_order() -> WindowSpec:
    """All windows in one partition: there are few, and each needs its neighbours."""
    return Window.partitionBy(single_run("number")).orderBy("number")


def _text(at: int) -> str:
    return format_time(np.int64(at).view("datetime64[us]"))
