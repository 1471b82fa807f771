"""The operator: how often a key came and its newest payload, in columns; one result for every record."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.operators import KeyedColumns, Operator
from elastic.operators.context import Context
from elastic.operators.operator import State, Yields


class NewestPayload(Operator):
    """Gives back when each record entered, so that whoever reads the result knows how long it took."""

    output_schema = "key long, count long, entered long"

    def __init__(self, payload_bytes: int) -> None:
        self._payload = f"V{payload_bytes}"

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("key long", {"count": "int64", "payload": self._payload})

    def open(self) -> None:
        """Load the compiled loops before there are rows to wait for them."""
        state = self.initial_state()
        state.count("count", state.rows_for(pa.array([], pa.int64())))

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        known: KeyedColumns = state.value
        at = known.rows_for(rows)
        known.count("count", at)
        known.column("payload")[at] = _of_fixed_width(rows["payload"], self._payload)
        return pa.table({"key": rows["key"], "count": known.column("count")[at], "entered": rows["entered"]})


def _of_fixed_width(column: pa.ChunkedArray, kind: str) -> NDArray[Any]:
    """Payloads lie one after the other, all equally long; no Python object for any of them."""
    array = column.combine_chunks()
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]].view(kind)
