"""Runs an application with the options of the command line."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import click
from rich.console import Console

from elastic import Job
from elastic.errors import ElasticError
from examples.harness.application import Application, RunningStream
from examples.harness.balance import choose_measuring_settings, rebalance
from examples.harness.options import StreamOptions
from examples.harness.report import format_verdict, format_window, to_table
from examples.harness.results import Results
from examples.harness.run import RunSettings, Summary, run_windows
from migration import MigrationError


def run_command(application: Application, options: StreamOptions) -> None:
    """Run an application, print its progress and its summary; exit with 1 if a window was wrong."""
    console = Console()
    if options.unpaced and not options.local:
        raise click.UsageError("--unpaced needs --local.")

    def show(text: str, style: str = "") -> None:
        console.print(text, style=style, highlight=False, soft_wrap=True)

    try:
        summary = run(application, options, lambda window: show(format_window(window)))
    except (ElasticError, MigrationError) as error:
        raise click.ClickException(str(error)) from error
    console.print(to_table(application.name, summary))
    show(format_verdict(summary), "bold green" if summary.is_right else "bold red")
    sys.exit(0 if summary.is_right else 1)


def run(
    application: Application, options: StreamOptions, on_window: Callable[[Any], None] = lambda _window: None
) -> Summary:
    """Run an application with the options of the command line."""
    results = Results(application)

    def balance(job: Job) -> bool:
        return rebalance(job, options.balance, options.theta, application.balanced)

    settings = RunSettings(options.intervals, balance, options.steps)
    with _start(application, options, results) as stream:
        return run_windows(application, stream, results, settings, on_window)


def _start(application: Application, options: StreamOptions, results: Results) -> AbstractContextManager[RunningStream]:
    measuring = choose_measuring_settings(options.interval)
    if options.local:
        from examples.harness.local_source import run_in_threads

        batches = options.intervals * options.pace.batches_per_interval
        return run_in_threads(
            application,
            results,
            batches=batches,
            paced=not options.unpaced,
            nodes=options.nodes,
            tasks=options.tasks,
            settings=measuring,
        )
    # Imported late: it imports Spark.
    from examples.harness.spark_source import run_on_local_spark

    most_nodes = max(options.nodes, *(step.nodes for step in options.steps), 1)
    size = {"nodes": options.nodes, "tasks": options.tasks}
    return run_on_local_spark(application, results, most_nodes=most_nodes, **size, **measuring)
