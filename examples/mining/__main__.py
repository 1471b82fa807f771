"""Mines a generated stream whose keys are split, while the job scales, and checks the answer.

python -m examples.mining top-words
python -m examples.mining spdt --batches 60
python -m examples.mining naive-bayes --spark
"""

import sys
from collections.abc import Callable

import click
from rich.console import Console
from rich.table import Table

from elastic.errors import ElasticError
from examples.mining.naive_bayes import run_naive_bayes
from examples.mining.run import Report, Size, StartJob, start_in_threads
from examples.mining.space_saving import run_space_saving
from examples.mining.spdt import run_spdt
from examples.mining.top_words import run_top_words

APPLICATIONS: dict[str, Callable[[Size, StartJob], Report]] = {
    "top-words": run_top_words,
    "naive-bayes": run_naive_bayes,
    "spdt": run_spdt,
    "space-saving": run_space_saving,
}


@click.command()
@click.argument("application", type=click.Choice(list(APPLICATIONS)))
@click.option("--batches", default=24, show_default=True, type=click.IntRange(3), help="Length of the stream.")
@click.option("--rows", default=2_000, show_default=True, type=click.IntRange(10), help="Rows of a batch, roughly.")
@click.option("--seed", default=0, show_default=True, help="Seed of the generated stream.")
@click.option("--spark", is_flag=True, help="Run on a local Spark instead of in threads of this process.")
def main(application: str, batches: int, rows: int, seed: int, spark: bool) -> None:
    """Run an application on a job that scales; exit with 1 if its answer is wrong."""
    try:
        report = APPLICATIONS[application](Size(batches, rows, seed), _find_start(spark=spark))
    except ElasticError as error:
        raise click.ClickException(str(error)) from error
    table = Table("", "value", title=report.name, title_justify="left")
    for name, figure in report.figures.items():
        table.add_row(name, figure)
    console = Console()
    console.print(table)
    is_right = report.difference is None
    text = f"right: {report.verdict}" if is_right else f"WRONG: {report.difference}"
    console.print(text, style="bold green" if is_right else "bold red", highlight=False, soft_wrap=True)
    sys.exit(0 if is_right else 1)


def _find_start(*, spark: bool) -> StartJob:
    if not spark:
        return start_in_threads
    # Imported late: it imports Spark.
    from examples.mining.spark_run import start_on_local_spark

    return start_on_local_spark


if __name__ == "__main__":
    main()
