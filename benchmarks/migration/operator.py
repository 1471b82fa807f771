"""The operator: the count and the newest payload of each key, in columns; one result per record."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.operators import KeyedColumns, Operator
from elastic.operators.context import Context
from elastic.operators.operator import State, Yields


class NewestPayload(Operator):
    """Emits the time at which each record entered, so that a reader of the result can compute the response time."""

    output_schema = "key long, count long, entered long"

    def __init__(self, payload_bytes: int) -> None:
        self._payload = f"V{payload_bytes}"

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("key long", {"count": "int64", "payload": self._payload})

    def open(self) -> None:
        """Load the compiled loops before the first rows."""
        state = self.initial_state()
        state.count("count", state.rows_for(pa.array([], pa.int64())))

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Yields:
        columns: KeyedColumns = state.value
        at = columns.rows_for(rows)
        columns.count("count", at)
        columns.column("payload")[at] = _view_fixed_width(rows["payload"], self._payload)
        return pa.table({"key": rows["key"], "count": columns.column("count")[at], "entered": rows["entered"]})


def _view_fixed_width(column: pa.ChunkedArray, kind: str) -> NDArray[Any]:
    """Return payloads of equal length as an array, without a Python object for any of them."""
    array = column.combine_chunks()
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]].view(kind)
