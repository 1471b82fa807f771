"""`elastic demo`: everything once, in two minutes, on this machine alone."""

import sys
from pathlib import Path
from typing import Any

import click


@click.command("demo")
@click.option(
    "--texts", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A CSV file, else invented."
)
@click.option("--store", default="file", show_default=True, help="file, s3 for a MinIO of its own, or a store's URL.")
@click.option("--rate", default=600, show_default=True, type=click.IntRange(20, 20_000), help="Texts a second.")
@click.option(
    "--every", "every_ms", type=click.IntRange(100, 60_000), help="Milliseconds between two batches of texts."
)
@click.option(
    "--pause", default=8.0, show_default=True, type=click.FloatRange(1, 600), help="Seconds between two acts."
)
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65_535), help="Of API and page; 0 is any.")
@click.option("--open", "browse", is_flag=True, help="Show the page and the report in a browser.")
@click.option("--stay", is_flag=True, help="Go on after the last act, for you to scale, until Ctrl-C.")
@click.option("--output", default="build/demo", show_default=True, type=click.Path(file_okay=False, path_type=Path))
def command(**wishes: Any) -> None:
    """Mine frequent patterns while the job scales 4 -> 6 -> 3 and a node is killed; prove that every count is exact."""
    # Imported late: they bring Spark with them.
    from elastic.errors import ElasticError
    from examples.demo.performance import Performance
    from migration import MigrationError
    from storage.errors import StorageError

    try:
        proof = Performance(**wishes).perform()
    except (ElasticError, MigrationError, StorageError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(0 if proof.holds else 1)
