"""Prints a table of response times, one of bytes, and the goals, and draws a chart. Takes a quarter of an hour.

All engines run one after the other in one Spark session, on the same stream and disk, each with durable state.
`--sweep` takes as long again, and temporarily needs about 10 GB of disk and memory.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

import elastic
from benchmarks.migration.charts import draw_sweep, draw_trials
from benchmarks.migration.engines import NODES, SPARK, WARM_WITH_STANDBYS, engine_names
from benchmarks.migration.goals import DEFAULT_MODE, WARM, Goal, Speeds, list_goals, list_warm_goals
from benchmarks.migration.measures import ResponseTimes, measure_silence, summarise_affected, summarise_entered
from benchmarks.migration.stream import Stream
from benchmarks.migration.sweep import LimitResult, SizeResult, sweep_limits, sweep_sizes
from benchmarks.migration.throughput import list_loads, measure_throughput
from benchmarks.migration.trial import MORE_NODES, Trial, run_trial
from benchmarks.report import table

WARM_UP_MB, WARM_UP_SECONDS = 10.0, 3.0
SIZES_MB = (10.0, 50.0, 200.0, 500.0, 1_000.0, 2_000.0)


def format_responses(trials: Mapping[str, Trial], stream: Stream) -> str:
    rows = []
    for name, one in trials.items():
        before, between, after = one.steady
        rows.append([name, "before", *_format_times(summarise_entered(one.responses, before)), "", "", ""])
        for phase, move, steady in (("out", one.out, between), ("back", one.back, after)):
            quiet = measure_silence(one.responses, move.stays, move.window)
            known = [f"{value:.2f}" if move.stays else "-" for value in quiet]
            rows.append(
                [
                    "",
                    phase,
                    *_format_times(summarise_affected(one.responses, move.window)),
                    f"{move.window.seconds:.2f}",
                    *known,
                ]
            )
            if move.moving != move.window:
                moving = summarise_affected(one.responses, move.moving)
                rows.append(["", "moving", *_format_times(moving), f"{move.moving.seconds:.2f}", "", ""])
            rows.append(["", f"after {phase}", *_format_times(summarise_entered(one.responses, steady)), "", "", ""])
    header = ["mode", "phase", "p50 ms", "p99 ms", "peak ms", "records", "seconds", "silence s", "until stored"]
    rate = stream.rows * 1_000 // stream.tick_ms
    what = f"{stream.state_mb:g} MB, {NODES} -> {MORE_NODES} -> {NODES} nodes, {rate:,} records per second"
    return table(f"{what}; silence of tasks that do not move", header, rows)


def format_bytes(trials: Mapping[str, Trial]) -> str:
    rows = []
    for name, one in trials.items():
        for phase, move in (("out", one.out), ("back", one.back)):
            moved = [f"{move.plan_bytes / 1e6:.2f}", f"{move.stored_bytes / 1e6:.2f}"]
            is_stored = move.stored_bytes > 0 and move.plan_bytes > 0  # targets of warm hand-overs read what is saved
            over = f"{100 * (move.stored_bytes / move.plan_bytes - 1):+.2f}" if is_stored else "-"
            speed = f"{move.stored_bytes / 1e6 / move.moving.seconds:.0f}" if is_stored else "-"
            rows.append([name, phase, *moved, over, f"{move.moving.seconds:.2f}", speed])
    header = ["mode", "phase", "plan's cost MB", "stored MB", "overhead %", "moving s", "MB/s"]
    return table("bytes moved against the plan's cost", header, rows)


def format_goals(mode: str, found: Sequence[Goal]) -> str:
    rows = [[g.what, _format_value(g.found, g.unit), _format_value(g.limit, g.unit), g.verdict] for g in found]
    return table(f"goals of {mode}", ["goal", "found", "at most", ""], rows)


def format_throughput(speeds: Speeds) -> str:
    rows = [
        [load, mode, *(f"{speed:,.0f}" for speed in found), f"{found.share:.0%}"]
        for (mode, load), found in speeds.items()
    ]
    header = ["load", "mode", "steady", "in migrations", "while state moves", "in migrations %"]
    return table("rows per second at full load", header, rows)


def format_sweep(bounded: Sequence[LimitResult], sized: Sequence[SizeResult]) -> str:
    header = ["MB in flight per node", "moving s", "p99 ms", "peak ms"]
    rows = [
        [f"{one.mb_per_node:.1f}", f"{one.seconds:.2f}", f"{one.p99_ms:.0f}", f"{one.peak_ms:.0f}"] for one in bounded
    ]
    first = table("by limit on bytes in flight", header, rows)
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
    return first + "\n" + table("by state size, out and back", header, rows)


def _format_value(value: float, unit: str) -> str:
    return f"{value:,.{2 if unit == 's' else 0}f} {unit}"


def _format_times(times: ResponseTimes) -> list[str]:
    return [f"{times.p50:.0f}", f"{times.p99:.0f}", f"{times.peak:.0f}", f"{times.records:,}"]


@click.command()
@click.option("--state-mb", default=200.0, help="State size before the measurements.")
@click.option("--seconds", default=20.0, help="Seconds of steady stream before, between and after the migrations.")
@click.option(
    "--only", multiple=True, type=click.Choice(engine_names()), help="Mode to measure; repeatable, all by default."
)
@click.option("--rounds", default=4, help="Migrations out and back at full load; 0 skips throughput.")
@click.option("--sweep/--no-sweep", default=False, help="Also measure by limit in flight and by state size.")
@click.option("--max-mb", default=2_000.0, help="Largest state of the sweep.")
def main(state_mb: float, seconds: float, only: tuple[str, ...], rounds: int, sweep: bool, max_mb: float) -> None:
    """Compare the impact of a migration on a stream, in every mode and in Spark's own way."""
    spark = elastic.local_session(MORE_NODES, spark_driver_memory="4g")
    spark.sparkContext.setLogLevel("OFF")
    stream = Stream(state_mb)
    run_trial(
        DEFAULT_MODE, spark, Stream(WARM_UP_MB), WARM_UP_SECONDS
    )  # so that the first trial does not start with a cold Spark
    chosen = [name for name in engine_names() if not only or name in only]
    trials = {name: run_trial(name, spark, stream, seconds) for name in chosen}
    speeds = {
        (name, load): measure_throughput(name, spark, load_stream, seconds / 4, rounds)
        for name in chosen
        if name in ("progressive", "live", WARM, WARM_WITH_STANDBYS) and rounds
        for load, load_stream in list_loads(state_mb).items()
    }
    print(format_responses(trials, stream))
    print(format_bytes({name: one for name, one in trials.items() if name != SPARK}))
    if speeds:
        print(format_throughput(speeds))
    if DEFAULT_MODE in trials:
        print(format_goals(DEFAULT_MODE, list_goals(trials, speeds)))
    for name in (WARM, WARM_WITH_STANDBYS):
        if name in trials:
            print(format_goals(name, list_warm_goals(trials[name], speeds, state_mb)))
    print(f"\nchart: {draw_trials(trials, state_mb).relative_to(Path.cwd())}", flush=True)
    if sweep:
        bounded = list(sweep_limits(spark, state_mb))
        sized = list(sweep_sizes(spark, [size for size in SIZES_MB if size <= max_mb]))
        print(format_sweep(bounded, sized))
        print(f"\nchart: {draw_sweep(bounded, sized).relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
