"""Generated trades of stocks, with bursts of single symbols."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from examples.workloads.key_stream import KeyNumbers, KeyStream
from examples.workloads.pace import Pace

TRADE_SCHEMA = pa.schema(
    [
        ("symbol", pa.string()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("trade", pa.int64()),  # numbered from 0 in order of arrival
        ("player", pa.int64()),
        ("is_buy", pa.bool_()),
        ("cents", pa.int64()),  # price of a share
    ]
)
_PLAYERS = 50
_BURSTING = 2  # symbols per phase
_DEAREST_CENTS = 50_000
_CHEAPEST_CENTS = 500
_SPREAD = 0.02  # of a price around that of its symbol
_MICROSECONDS = 1_000


@dataclass(frozen=True)
class Trades:
    """Trades of symbols that a `KeyStream` draws; a share `burst` of each phase goes to two symbols of its own.

    Trades arrive out of order, at most `delay_ms` late.
    """

    symbols: KeyStream
    pace: Pace
    burst: float = 0.2
    delay_ms: int = 50

    def batch(self, number: int) -> pa.Table:
        count = self.pace.rows_per_batch
        chance = np.random.default_rng([self.symbols.seed, number, 1])
        symbols = self._draw_symbols(number, chance)
        first_ms = number * self.pace.every_ms
        times = first_ms + chance.integers(0, self.pace.every_ms, count) - chance.integers(0, self.delay_ms + 1, count)
        usual = np.random.default_rng(self.symbols.seed).integers(
            _CHEAPEST_CENTS, _DEAREST_CENTS, len(self.symbols.names)
        )
        cents = usual[symbols] * (1 + _SPREAD * (chance.random(count) - 0.5))
        columns = [
            self.symbols.names.take(pa.array(symbols)),
            pa.array(np.maximum(times, 0) * _MICROSECONDS).cast(pa.timestamp("us", tz="UTC")),
            pa.array(np.arange(number * count, (number + 1) * count)),
            pa.array(chance.integers(0, _PLAYERS, count)),
            pa.array(chance.random(count) < 0.5),
            pa.array(cents.astype(np.int64)),
        ]
        return pa.Table.from_arrays(columns, schema=TRADE_SCHEMA)

    def _draw_symbols(self, number: int, chance: np.random.Generator) -> KeyNumbers:
        phase, count = self.pace.phase_of(number), self.pace.rows_per_batch
        drawn = self.symbols.draw(number, phase, count)
        bursting = np.random.default_rng([self.symbols.seed, phase, 2]).integers(0, len(self.symbols.names), _BURSTING)
        return np.where(chance.random(count) < self.burst, bursting[chance.integers(0, _BURSTING, count)], drawn)


def make_symbols(count: int) -> pa.Array:
    """Return the names of that many stocks."""
    return pa.array(f"S{number:04d}" for number in range(count))
