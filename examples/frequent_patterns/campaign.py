"""A long run that checks every batch while the job scales and nodes are killed.

    python -m examples.frequent_patterns.campaign --minutes 10 --migrations 10 --kills 5 --seed 1

After every batch the maximal patterns that the job reports are compared with those of the miner over the same window.
Ends by itself, with a table of what happened; with 1 if any batch was wrong or anything planned did not happen.
"""

import sys
import time
from pathlib import Path

import click

from examples.frequent_patterns.audit import Audit
from examples.frequent_patterns.disturbances import Disturbances, Planned
from examples.frequent_patterns.local import quiet_spark, store_in
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.report import show
from examples.frequent_patterns.texts import MadeTexts, ReadTexts
from examples.frequent_patterns.watched import WatchedJob

_NODES, _MOST_NODES = 3, 5
_LOOK_SECONDS = 0.1
_TELL_SECONDS = 30.0
_SETTLE_SECONDS = 180.0  # for what is still under way when the time is over


@click.command(context_settings={"show_default": True})
@click.option("--minutes", default=10.0, type=click.FloatRange(0.1, 120))
@click.option("--migrations", default=10, type=click.IntRange(0, 500))
@click.option("--kills", default=5, type=click.IntRange(0, 500))
@click.option("--seed", default=1)
@click.option("--texts", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="a CSV file, else invented")
@click.option("--rate", default=200, type=click.IntRange(1), help="texts a batch")
@click.option("--every", default="500 milliseconds", help="how often there is a batch")
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
    """Check every batch of a job that scales and loses nodes."""
    mining = Mining(threshold, length, window)
    audit = Audit(MadeTexts(seed) if texts is None else ReadTexts.of_csv(texts), rate, mining)
    planned = Planned.spread(minutes * 60, migrations, kills, seed)
    with quiet_spark(_MOST_NODES, "OFF") as spark, store_in(None) as store:
        with WatchedJob(spark, audit, store, nodes=_NODES, every=every) as watched:
            disturbances = Disturbances(watched.job, planned, seed, most_nodes=_MOST_NODES)
            _run(watched, disturbances, minutes * 60)
        watched.finish()
    show(audit, disturbances, watched, minutes, seed)
    sys.exit(0 if watched.is_right and disturbances.is_complete else 1)


def _run(watched: WatchedJob, disturbances: Disturbances, seconds: float) -> None:
    """Look at batches as they come and disturb as planned, until the time is over and all has happened."""
    began = told = time.monotonic()
    while (past := time.monotonic() - began) < seconds + _SETTLE_SECONDS:
        watched.look(_LOOK_SECONDS)
        disturbances.go_on(past)
        if time.monotonic() - told > _TELL_SECONDS:
            told = time.monotonic()
            click.echo(f"{past:5.0f} s  {watched}  {disturbances}")
        if past > seconds and disturbances.is_over:
            return


if __name__ == "__main__":
    main()
