"""Measures the ready-made operators on one core: what a sender does (`combine`) and what a node does (a step).

Event time advances by a second per batch, with disorder, so that windows end and rows expire at the rate at which they
come. Time is processor time, which other programs on the machine disturb less. Each batch is measured; the table shows
medians, without the batches that fill the state, and the spread of the sum.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import click
import numpy as np
import pyarrow as pa

from benchmarks.report import table
from elastic.operators import (
    Aggregate,
    CountByKey,
    DropDuplicates,
    Enrich,
    IntervalJoin,
    Operator,
    Side,
    TopK,
    WindowJoin,
    drop_duplicates_within_watermark,
    session_window,
    window,
)
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from elastic.operators.context import Moment
from elastic.operators.stage_runner import StageRunner
from storage.state import UnitId

ROWS = 250_000  # per batch
FILLING = 12  # batches; a window and a time to live are shorter
DELAY_MS = 2_000

Batches = Callable[[int, str], Iterator[pa.Table]]


def events(keys: int, kind: str) -> Iterator[pa.Table]:
    """Yield batches of rows with a key, a time, an amount and a visitor."""
    rng = np.random.default_rng(keys)
    second = 0
    while True:
        times = second * 1_000 + rng.integers(0, 1_000, ROWS) - rng.exponential(200, ROWS).astype(np.int64)
        yield pa.table(
            {
                "key": _keys(rng, keys, kind),
                "ts": pa.array(times * 1_000).view(pa.timestamp("us", "UTC")),
                "amount": rng.integers(0, 10_000, ROWS),
                "visitor": rng.integers(0, 1_000_000, ROWS),
            }
        )
        second += 1


def two_inputs(keys: int, kind: str) -> Iterator[pa.Table]:
    """Yield batches of which an eighth of the rows are of the left input, the others of the right."""
    rng = np.random.default_rng(keys)
    for rows in events(keys, kind):
        is_left = rng.random(ROWS) < 1 / 8
        yield rows.append_column("input", pa.array(np.where(is_left, "left", "right")))


def _keys(rng: np.random.Generator, keys: int, kind: str) -> pa.Array:
    numbers = pa.array(rng.integers(0, keys, ROWS))
    return numbers if kind == "long" else pa.array([f"customer-{key:07}" for key in range(keys)]).take(numbers)


LEFT = Side("left", time="ts", columns={"offered": "ts", "offer": "amount"})
RIGHT = Side("right", time="ts", columns={"asked": "ts", "visitor": "visitor"})

OPERATORS: dict[str, tuple[Operator, Batches]] = {
    "count per key": (CountByKey(), events),
    "count, sum, min, max, mean per key": (
        Aggregate(n=F.count(), s=F.sum("amount"), a=F.min("amount"), z=F.max("amount"), m=F.mean("amount")),
        events,
    ),
    "approximate distinct count per key": (Aggregate(n=F.approx_count_distinct("visitor", rsd=0.1)), events),
    "count, sum per tumbling window": (
        Aggregate(n=F.count(), s=F.sum("amount")).over(window("2 s"), time="ts"),
        events,
    ),
    "count, sum per sliding window": (
        Aggregate(n=F.count(), s=F.sum("amount")).over(window("4 s", "1 s"), time="ts"),
        events,
    ),
    "count, sum per session": (
        Aggregate(n=F.count(), s=F.sum("amount")).over(session_window("1 s"), time="ts"),
        events,
    ),
    "drop duplicates, ttl": (DropDuplicates("visitor", ttl="5 s"), events),
    "drop duplicates within watermark": (drop_duplicates_within_watermark("visitor", time="ts", within="5 s"), events),
    "top 10 per key": (TopK(10, by="amount"), events),
    "interval join": (IntervalJoin(LEFT, RIGHT, upper="2 s"), two_inputs),
    "full interval join": (IntervalJoin(LEFT, RIGHT, upper="2 s", how="full"), two_inputs),
    "window join": (WindowJoin(LEFT, RIGHT, window("4 s")), two_inputs),
    "enrichment": (Enrich(Side("right", columns=["amount"]), table=Side("left", columns=["visitor"])), two_inputs),
}


class Figures(NamedTuple):
    """Rows per second of processor time, by median; and of the quartiles of both together."""

    sender: float
    node: float
    both: float
    low: float
    high: float
    emitted: float  # results per input row
    state: int  # bytes


def measure(operator: Operator, batches: Iterator[pa.Table], count: int) -> Figures:
    """Run an operator over batches in one unit."""
    first = next(batches)
    runner = StageRunner(operator, key=("key",), input_schema=first.schema, name="bench")
    runner.open()
    state = runner.new_state()
    spent: list[tuple[float, float]] = []
    emitted = 0
    for number in range(FILLING + count):
        rows = next(batches)
        watermark = None if number == 0 else number * 1_000 - DELAY_MS
        moment = Moment(UnitId(0, 0), number, 0, number * 1_000, watermark, (number + 1) * 1_000 - DELAY_MS)
        began = time.process_time()
        combined = runner.combine(rows)
        middle = time.process_time()
        output = runner.step(state, [combined], moment)
        ended = time.process_time()
        if number >= FILLING:
            spent.append((middle - began, ended - middle))
            emitted += 0 if output.sink is None else output.sink.num_rows
    sums = [sender + node for sender, node in spent]
    low, _, high = statistics.quantiles(sums, n=4)
    sender, node = (statistics.median(each) for each in zip(*spent, strict=True))
    return Figures(
        ROWS / max(sender, 1e-9),
        ROWS / node,
        ROWS / statistics.median(sums),
        ROWS / high,
        ROWS / low,
        emitted / (ROWS * count),
        runner.size(state),
    )


@click.command()
@click.option("--keys", default=100_000, help="Number of keys.")
@click.option("--kind", multiple=True, type=click.Choice(["long", "string"]), default=("long", "string"))
@click.option("--batches", default=20, help="Measured batches per operator.")
@click.option("--only", default="", help="Measure operators whose name has this text.")
def main(keys: int, kind: tuple[str, ...], batches: int, only: str) -> None:
    """Measure rows per second and core of the ready-made operators."""
    pa.set_cpu_count(1)
    lines = []
    for name, (operator, make) in OPERATORS.items():
        for each in kind if only in name else ():
            found = measure(operator, make(keys, each), batches)
            speeds = [f"{speed / 1e6:.1f}" for speed in (found.sender, found.node, found.both)]
            spread = f"{found.low / 1e6:.1f} to {found.high / 1e6:.1f}"
            lines.append([name, each, *speeds, spread, f"{found.emitted:.2f}", f"{found.state / 1e6:.1f}"])
            click.echo("  ".join(lines[-1]))
    columns = ["operator", "keys", "sender", "node", "both", "quartiles", "results per row", "state, MB"]
    print(table(f"million rows/s of one core, {keys:,} keys, batches of {ROWS:,} rows", columns, lines))


if __name__ == "__main__":
    main()
