"""Prints how long each part of a recovery takes after `kill -9` of a node at the demo's load, and draws a picture.

Jobs without standbys, with a spare and with a standby run one after the other, about two minutes each for 20 kills.
Every batch of results is compared with a miner that counts from scratch.
"""

import click
import numpy as np

import elastic
from benchmarks.failover.kills import AFTER_SECONDS, Load, Measured, measure_kills
from benchmarks.failover.picture import draw
from benchmarks.report import table

SETTINGS = {
    "neither": {"standbys": 0, "spares": 0},
    "a spare": {"standbys": 0, "spares": 1},
    "a standby": {"standbys": 1, "spares": 0},
    "both": {"standbys": 1, "spares": 1},
}
_MARKS = ("noticed", "ordered", "serving", "caught_up")


def format_recoveries(measured: dict[str, Measured]) -> str:
    """Return tables of the recoveries and of the response times around them."""
    rows, responses = [], []
    for name, one in measured.items():
        for label, quantile in (("median", 0.5), ("worst", 1.0)):
            marks = [np.quantile([getattr(recovery, mark) for recovery in one.recoveries], quantile) for mark in _MARKS]
            rows.append([name, label, *(f"{mark:.0f}" for mark in marks)])
        steady, around = (np.quantile(values, [0.5, 0.99, 1.0]) for values in (one.steady, one.around))
        cells = [f"{value:.0f}" for value in (*steady, *around)]
        batches = f"{len(one.steady)}, {len(one.around)}"
        ratio, verdict = f"{around[1] / steady[1]:.2f}", "exact" if one.proof.holds else "WRONG"
        responses.append([name, *cells, ratio, batches, verdict])
    kinds = [f"{when} {what}" for when in ("steady", "around") for what in ("p50", "p99", "max")]
    return "\n".join(
        [
            table("ms after kill -9 of a node", ["", "", *(mark.replace("_", " ") for mark in _MARKS)], rows),
            table(
                f"ms from text to pattern, around a kill: in flight in the {AFTER_SECONDS:g} s after it",
                ["", *kinds, "p99, ratio", "batches", "results"],
                responses,
            ),
        ]
    )


@click.command()
@click.option("--kills", default=20, show_default=True, help="Nodes to kill, one after the other.")
@click.option("--nodes", default=4, show_default=True)
@click.option("--rate", default=600, show_default=True, help="Texts per second.")
@click.option("--every", "every_ms", default=500, show_default=True, help="Milliseconds between two batches.")
@click.option(
    "--with",
    "names",
    multiple=True,
    type=click.Choice(list(SETTINGS)),
    default=("neither", "a spare", "a standby"),
    help="What to measure with; repeatable.",
)
def main(kills: int, nodes: int, rate: int, every_ms: int, names: tuple[str, ...]) -> None:
    """Measure recoveries after `kill -9`."""
    spark = elastic.local_session(nodes, spark_log_level="ERROR")
    spark.sparkContext.setLogLevel("OFF")
    measured: dict[str, Measured] = {}
    for name in names:
        measured[name] = measure_kills(spark, Load(rate, every_ms, nodes), kills=kills, **SETTINGS[name])
        click.echo(f"{name}: {measured[name].proof}")
        click.echo(format_recoveries({name: measured[name]}))
    if len(measured) > 1:
        click.echo(format_recoveries(measured))
    click.echo(f"\npicture: {draw(measured)}")
    if not all(one.proof.holds for one in measured.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
