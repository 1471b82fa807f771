"""`elastic demo`: a tour of all features in two minutes, on this machine."""

import sys
from pathlib import Path
from typing import Any

import click


@click.command("demo")
@click.option(
    "--texts",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CSV file of texts; generated if not given.",
)
@click.option("--store", default="file", show_default=True, help="file, s3 for a local MinIO, or the URL of a store.")
@click.option("--rate", default=600, show_default=True, type=click.IntRange(20, 20_000), help="Texts per second.")
@click.option("--every", "every_ms", type=click.IntRange(100, 60_000), help="Milliseconds between two batches.")
@click.option(
    "--pause", default=8.0, show_default=True, type=click.FloatRange(1, 600), help="Seconds between two steps."
)
@click.option(
    "--port",
    default=0,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="Port of API and dashboard; 0 chooses one.",
)
@click.option("--open", "browse", is_flag=True, help="Open the dashboard and the report in a browser.")
@click.option(
    "--standbys",
    type=click.IntRange(0, 2),
    help="Nodes that follow each task, to take over when its node is lost; by default 1 where memory allows.",
)
@click.option("--stay", is_flag=True, help="Keep running after the last step, until Ctrl-C.")
@click.option("--output", default="build/demo", show_default=True, type=click.Path(file_okay=False, path_type=Path))
def command(**options: Any) -> None:
    """Mine frequent patterns while the job scales 4 -> 6 -> 3 and loses a node; verify that every count is exact."""
    # Imported late: they import Spark.
    from elastic.errors import ElasticError
    from examples.demo.demo import Demo
    from migration import MigrationError
    from storage.errors import StorageError

    try:
        proof = Demo(**options).run()
    except (ElasticError, MigrationError, StorageError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(0 if proof.holds else 1)
