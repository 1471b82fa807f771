"""A long run that verifies every batch while the job scales and nodes are killed.

    python -m examples.frequent_patterns.campaign --minutes 10 --migrations 10 --kills 5 --seed 1

After every batch the maximal patterns that the job reports are compared with those of the miner over the same window.
Ends with a table of all events; the exit code is 1 if a batch was wrong or a scheduled event did not happen.
"""

import sys
import time
from pathlib import Path

import click

from examples.frequent_patterns.audit import Audit
from examples.frequent_patterns.audited_job import AuditedJob
from examples.frequent_patterns.disturbances import Disturbances, Schedule
from examples.frequent_patterns.local_spark import open_store, quiet_spark
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.report import show
from examples.frequent_patterns.texts import CsvTexts, GeneratedTexts

_NODES, _MOST_NODES = 3, 5
_POLL_SECONDS = 0.1
_PRINT_SECONDS = 30.0
_SETTLE_SECONDS = 180.0  # for events still in progress at the end


@click.command(context_settings={"show_default": True})
@click.option("--minutes", default=10.0, type=click.FloatRange(0.1, 120))
@click.option("--migrations", default=10, type=click.IntRange(0, 500))
@click.option("--kills", default=5, type=click.IntRange(0, 500))
@click.option("--seed", default=1)
@click.option(
    "--texts",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CSV file of texts; generated if not given",
)
@click.option("--rate", default=200, type=click.IntRange(1), help="texts per batch")
@click.option("--every", default="500 milliseconds", help="interval of batches")
@click.option("--window", default="10 batches")
@click.option("--threshold", default=12, type=click.IntRange(1))
@click.option("--length", default=3, type=click.IntRange(1, 6))
def main(
    minutes: float,
    migrations: int,
    kills: int,
    seed: int,
    texts: Path | None,
    rate: int,
    every: str,
    window: str,
    threshold: int,
    length: int,
) -> None:
    """Verify every batch of a job that scales and loses nodes."""
    mining = Mining(threshold, length, window)
    audit = Audit(GeneratedTexts(seed) if texts is None else CsvTexts.read(texts), rate, mining)
    planned = Schedule.spread_evenly(minutes * 60, migrations, kills, seed)
    with quiet_spark(_MOST_NODES, "OFF") as spark, open_store(None) as store:
        with AuditedJob(spark, audit, store, nodes=_NODES, every=every) as audited:
            disturbances = Disturbances(audited.job, planned, seed, max_nodes=_MOST_NODES)
            _run(audited, disturbances, minutes * 60)
        audited.finish()
    show(audit, disturbances, audited, minutes, seed)
    sys.exit(0 if audited.is_right and disturbances.is_complete else 1)


def _run(audited: AuditedJob, disturbances: Disturbances, seconds: float) -> None:
    """Check batches and run the scheduled disturbances until the time is over and all have happened."""
    began = printed = time.monotonic()
    while (past := time.monotonic() - began) < seconds + _SETTLE_SECONDS:
        audited.check_for(_POLL_SECONDS)
        disturbances.advance(past)
        if time.monotonic() - printed > _PRINT_SECONDS:
            printed = time.monotonic()
            click.echo(f"{past:5.0f} s  {audited}  {disturbances}")
        if past > seconds and disturbances.is_over:
            return


if __name__ == "__main__":
    main()
