"""Prints one table of response times, one of bytes, the goals, and draws a picture. Takes about a quarter of an hour.

All engines run one after the other in one Spark session, on the same stream and disk, each with its durability on.
`--sweep` takes as long again, and some 10 GB of disk and of memory for a moment.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

import elastic
from benchmarks.migration.engines import NODES, SPARK, names
from benchmarks.migration.goals import OURS, Goal, Speeds, goals
from benchmarks.migration.measures import Milliseconds, silence, touched_by, within
from benchmarks.migration.picture import picture, sweep_picture
from benchmarks.migration.stream import Stream
from benchmarks.migration.sweep import Bounded, Sized, against_bounds, against_size
from benchmarks.migration.throughput import loads, throughput
from benchmarks.migration.trial import MORE_NODES, Trial, trial
from benchmarks.report import table

WARM_UP_MB, WARM_UP_SECONDS = 10.0, 3.0
SIZES_MB = (10.0, 50.0, 200.0, 500.0, 1_000.0, 2_000.0)


def response_table(trials: Mapping[str, Trial], stream: Stream) -> str:
    rows = []
    for name, one in trials.items():
        before, between, after = one.steady
        rows.append([name, "before", *_times(within(one.responses, before)), "", "", ""])
        for phase, move, steady in (("out", one.out, between), ("back", one.back, after)):
            quiet = silence(one.responses, move.stays, move.window)
            known = [f"{value:.2f}" if move.stays else "-" for value in quiet]
            rows.append(
                ["", phase, *_times(touched_by(one.responses, move.window)), f"{move.window.seconds:.2f}", *known]
            )
            if move.moving != move.window:
                moving = touched_by(one.responses, move.moving)
                rows.append(["", "moving", *_times(moving), f"{move.moving.seconds:.2f}", "", ""])
            rows.append(["", f"after {phase}", *_times(within(one.responses, steady)), "", "", ""])
    header = ["mode", "phase", "p50 ms", "p99 ms", "peak ms", "records", "seconds", "silence s", "until stored"]
    rate = stream.rows * 1_000 // stream.tick_ms
    what = f"{stream.state_mb:g} MB, {NODES} -> {MORE_NODES} -> {NODES} nodes, {rate:,} records a second"
    return table(f"{what}; silence is that of tasks that stay", header, rows)


def bytes_table(trials: Mapping[str, Trial]) -> str:
    rows = []
    for name, one in trials.items():
        for phase, move in (("out", one.out), ("back", one.back)):
            if move.plan_bytes:
                moved = [f"{move.plan_bytes / 1e6:.2f}", f"{move.stored_bytes / 1e6:.2f}"]
                over = f"{100 * (move.stored_bytes / move.plan_bytes - 1):+.2f}"
                speed = f"{move.stored_bytes / 1e6 / move.moving.seconds:.0f}"
                rows.append([name, phase, *moved, over, f"{move.moving.seconds:.2f}", speed])
    header = ["mode", "phase", "plan's cost MB", "moved MB", "overhead %", "moving s", "MB/s"]
    return table("bytes moved against the plan's cost", header, rows)


def goals_table(found: Sequence[Goal]) -> str:
    rows = [[g.what, _with_unit(g.found, g.unit), _with_unit(g.limit, g.unit), g.verdict] for g in found]
    return table(f"goals of {OURS}", ["goal", "found", "at most", ""], rows)


def throughput_table(speeds: Speeds) -> str:
    rows = [
        [load, mode, *(f"{speed:,.0f}" for speed in found), f"{found.share:.0%}"]
        for (mode, load), found in speeds.items()
    ]
    header = ["load", "mode", "steady", "in migrations", "while state moves", "in migrations %"]
    return table("rows a second at volume", header, rows)


def sweep_tables(bounded: Sequence[Bounded], sized: Sequence[Sized]) -> str:
    header = ["MB in flight per node", "moving s", "p99 ms", "peak ms"]
    rows = [
        [f"{one.mb_per_node:.1f}", f"{one.seconds:.2f}", f"{one.p99_ms:.0f}", f"{one.peak_ms:.0f}"] for one in bounded
    ]
    first = table("against the bound on bytes in flight", header, rows)
    header = ["state MB", "mode", "moved MB", "moving s", "MB/s", "peak ms"]
    rows = [
        [
            f"{one.state_mb:g}",
            one.mode,
            f"{one.moved_mb:.1f}",
            f"{one.seconds:.2f}",
            f"{one.mb_per_second:.0f}",
            f"{one.peak_ms:.0f}",
        ]
        for one in sized
    ]
    return first + "\n" + table("against the size of the state, out and back", header, rows)


def _with_unit(value: float, unit: str) -> str:
    return f"{value:,.{2 if unit == 's' else 0}f} {unit}"


def _times(found: Milliseconds) -> list[str]:
    return [f"{found.p50:.0f}", f"{found.p99:.0f}", f"{found.peak:.0f}", f"{found.records:,}"]


@click.command()
@click.option("--state-mb", default=200.0, help="state to fill before anything is measured")
@click.option("--seconds", default=20.0, help="steady stream before, between and after the moves")
@click.option("--only", multiple=True, type=click.Choice(names()), help="some of the modes; all by default")
@click.option("--rounds", default=4, help="migrations out and back at volume; 0 leaves throughput out")
@click.option("--sweep/--no-sweep", default=False, help="also against the bound in flight and the size of the state")
@click.option("--most-mb", default=2_000.0, help="the largest state of the sweep")
def main(state_mb: float, seconds: float, only: tuple[str, ...], rounds: int, sweep: bool, most_mb: float) -> None:
    """Compare what a stream notices of a migration in every mode, and in Spark's own way."""
    spark = elastic.local_session(MORE_NODES, spark_driver_memory="4g")
    spark.sparkContext.setLogLevel("OFF")
    stream = Stream(state_mb)
    trial(OURS, spark, Stream(WARM_UP_MB), WARM_UP_SECONDS)  # who comes first must not pay for a cold Spark
    chosen = [name for name in names() if not only or name in only]
    trials = {name: trial(name, spark, stream, seconds) for name in chosen}
    speeds = {
        (name, load): throughput(name, spark, at_volume, seconds / 4, rounds)
        for name in chosen
        if name in ("progressive", "live") and rounds
        for load, at_volume in loads(state_mb).items()
    }
    print(response_table(trials, stream))
    print(bytes_table({name: one for name, one in trials.items() if name != SPARK}))
    if speeds:
        print(throughput_table(speeds))
    if OURS in trials:
        print(goals_table(goals(trials, speeds)))
    print(f"\npicture: {picture(trials, state_mb).relative_to(Path.cwd())}", flush=True)
    if sweep:
        bounded = list(against_bounds(spark, state_mb))
        sized = list(against_size(spark, [size for size in SIZES_MB if size <= most_mb]))
        print(sweep_tables(bounded, sized))
        print(f"\npicture: {sweep_picture(bounded, sized).relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
