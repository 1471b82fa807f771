"""Learn a matrix with `spark-submit`, on any master:

spark-submit mdp/spark/learn_job.py --input s3a://logs/2015/ --load-column value --low 8 --high 16 \
    --output s3://models/tweets.json

Every option of `mdp.learning.Recipe` is one here, with dashes for underscores.
"""

import argparse
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from mdp.learning.hourly import HourlyMatrices
from mdp.learning.matrix_files import save_matrix
from mdp.learning.recipe import Recipe
from mdp.learning.rendering import format_matrix, format_summary
from mdp.spark.learning import SparkLearner
from mdp.spark.session import get_session

_WHOLE = ("low", "high")
_FRACTIONS = ("window_seconds", "quantiles", "hysteresis", "smoothing")


def main(arguments: Sequence[str] | None = None) -> None:
    given = vars(_parser().parse_args(arguments))
    recipe = Recipe(**{f.name: given[f.name] for f in fields(Recipe) if given[f.name] is not None})
    spark = get_session("elastic learn", given["master"])
    columns = {name: given[name] for name in ("time_column", "load_column", "nodes_column")}
    learner = SparkLearner(spark, given["input"], recipe, **columns)
    try:
        learned = learner.hourly() if given["hourly"] else learner.matrix()
    finally:
        spark.stop()
    save_matrix(learned, given["output"])
    overall = learned.overall if isinstance(learned, HourlyMatrices) else learned
    print(format_matrix(overall), format_summary(overall), f"saved at {given['output']}", sep="\n\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Learn a migration transition matrix from logs, on Spark.")
    parser.add_argument("--input", action="append", required=True, help="a CSV or Parquet file or folder; repeatable")
    parser.add_argument("--output", required=True, help="a path, or a store's URL, a slash and a name.json")
    parser.add_argument("--time-column", default="timestamp")
    parser.add_argument("--load-column")
    parser.add_argument("--nodes-column")
    parser.add_argument("--hourly", action="store_true", help="also a matrix for every hour of the day")
    parser.add_argument("--master", help="Spark master; default: that of spark-submit")
    for field in fields(Recipe):
        kind: dict[str, Any] = {"type": int if field.name in _WHOLE else float if field.name in _FRACTIONS else str}
        if field.name == "quantiles":
            kind["nargs"] = 2
        parser.add_argument(f"--{field.name.replace('_', '-')}", **kind)
    return parser


if __name__ == "__main__":
    main()
