"""Random streams with disorder and lateness, mixed with faults, and the clocks that the engine would show for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa

from elastic.operators.testing import Crash, InputBatch, OperatorTester, Rekey, Scale

TASKS = 5
DELAY_MS = 20
END_MS = 10_000_000
SCHEMA = pa.schema([("key", pa.string()), ("t", pa.int64()), ("x", pa.int64())])

Row = dict[str, Any]


@dataclass(frozen=True)
class CrashOne:
    """The crash of one of the nodes that there are, whatever their names."""

    number: int


keys = st.sampled_from(["a", "b", "c", None])
rows = st.builds(
    lambda key, t, x: {"key": key, "t": t, "x": x},
    keys,
    st.one_of(st.integers(-30, 70), st.integers(0, 20), st.none()),
    st.one_of(st.integers(0, 4), st.none()),
)
batches = st.lists(st.lists(rows, max_size=6), min_size=1, max_size=8)
faults = st.one_of(
    st.builds(Scale, st.integers(1, 4)),
    st.builds(CrashOne, st.integers(0, 3)),
    st.builds(Rekey, st.dictionaries(keys, st.one_of(st.integers(0, TASKS - 1), st.none()), max_size=3)),
)


@st.composite
def scenarios(draw: st.DrawFn, rows: st.SearchStrategy[list[list[Row]]] = batches) -> "Scenario":
    """Return batches with faults between them; most batches advance in time, so that windows end."""
    drawn = draw(rows)
    advance = draw(st.integers(0, 60))
    for number, batch in enumerate(drawn):
        for row in batch:
            row["t"] = None if row["t"] is None else row["t"] + number * advance
    return Scenario(drawn, [draw(st.lists(faults, max_size=2)) for _ in drawn])


@dataclass
class Scenario:
    """Batches, and what happens after each of them."""

    batches: list[list[Row]]
    faults: list[list[Any]]

    def run(self, tester: OperatorTester) -> list[Row]:
        """Run it; then the watermark and the clock pass everything."""
        emitted: list[Row] = []
        for batch, faults in zip(self.batches, self.faults, strict=True):
            emitted += tester.run([batch])
            for fault in faults:
                nodes = tester.assignment.nodes
                tester.run([Crash(nodes[fault.number % len(nodes)]) if isinstance(fault, CrashOne) else fault])
        for end_ms in (END_MS, END_MS + 1):
            emitted += tester.run([InputBatch([], timestamp_ms=end_ms, next_watermark_ms=end_ms)])
        return emitted

    def clocked(self) -> Iterator[tuple[list[Row], int, int | None]]:
        """Yield every batch with its processing time and the watermark for its rows."""
        watermark: int | None = None
        for number, batch in enumerate(self.batches):
            yield batch, number * 1_000, watermark
            newest = max((row["t"] for row in batch if row["t"] is not None), default=None)
            if newest is not None:
                watermark = newest - DELAY_MS if watermark is None else max(watermark, newest - DELAY_MS)


def canonical(rows: list[Row]) -> list[str]:
    """Return rows in an order of their own: that of different keys depends on their units."""
    return sorted(map(repr, rows))
