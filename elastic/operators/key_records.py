"""Keys on their way from one unit to another, as records of the log: orders to the units that they leave, then parts.

A round of a batch has rows, orders or parts, never two of them. What a table holds is in the metadata of its schema,
which the engine removes from the rows of users: a part is unpickled, and must be one that the engine logged.
"""

import pickle
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from elastic.routing import KeyOrders, split

if TYPE_CHECKING:
    from elastic.operators.calls import UnitState
    from elastic.operators.stage_runner import StageRunner

_KIND = b"elastic.key_records"
_ORDERS = pa.schema([("hash", pa.int64()), ("target", pa.int64())], metadata={_KIND: b"orders"})
_PARTS = pa.schema([("target", pa.int64()), ("state", pa.large_binary())], metadata={_KIND: b"parts"})


def log_orders(orders: Mapping[int, KeyOrders]) -> dict[int, pa.Table]:
    """Return the records that order units, by number, to part with keys."""
    return {unit: pa.table([one.hashes, one.targets], schema=_ORDERS) for unit, one in orders.items()}


def log_parts(parts: Sequence[pa.Table]) -> Mapping[int, pa.Table]:
    """Return parts that `part_keys` returned by the number of the unit that each is for, in their order."""
    records = pa.concat_tables(parts)
    return split(records, records["target"].to_numpy()).slices()


def without_kind(rows: pa.Table) -> pa.Table:
    """Return the rows of a user, which are neither orders nor parts whatever their metadata says."""
    metadata = rows.schema.metadata
    return rows.replace_schema_metadata(None) if metadata and _KIND in metadata else rows


def are_orders(slices: Sequence[pa.Table]) -> bool:
    return _has_kind(slices, _ORDERS)


def are_parts(slices: Sequence[pa.Table]) -> bool:
    return _has_kind(slices, _PARTS)


def part_keys(runner: "StageRunner", state: "UnitState", orders: Sequence[pa.Table]) -> pa.Table:
    """Take the keys of these orders out of a state; return a part for each target.

    O(keys of the state + targets * keys that leave).
    """
    records = pa.concat_tables(orders)
    hashes, targets = records["hash"].to_numpy(), records["target"].to_numpy()
    *others, last = np.unique(targets).tolist()
    leaving = runner.part(state, hashes)
    parts = [(target, runner.capture(runner.part(leaving, hashes[targets == target]))) for target in others]
    parts.append((last, runner.capture(leaving)))
    # The log object is signed, so that what is unpickled was pickled here.
    columns = [target for target, _ in parts], [pickle.dumps(part, protocol=5) for _, part in parts]
    return pa.table(list(columns), schema=_PARTS)


def join_parts(runner: "StageRunner", state: "UnitState", parts: Sequence[pa.Table]) -> None:
    """Put these parts into a state, in the order of the log."""
    for table in parts:
        for data in table["state"]:
            runner.join(state, runner.restore(pickle.loads(data.as_buffer())))  # noqa: S301 - signed, as above


def _has_kind(slices: Sequence[pa.Table], schema: pa.Schema) -> bool:
    return bool(slices) and (slices[0].schema.metadata or {}).get(_KIND) == schema.metadata[_KIND]
