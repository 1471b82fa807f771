"""Keys on their way from one unit to another, as records of the log: orders to the units that they leave, then parts.

A round of a batch has rows, orders or parts, never two of them. What a table holds is in the metadata of its schema,
which the engine removes from the rows of users: a part is unpickled, and must be one that the engine logged.

The log has the parts for one unit as bytes rather than as a table, which would be larger than the states of many keys.
"""

import pickle
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from elastic.operators.upgrades import VERSION
from elastic.routing import KeyOrders, split
from storage.codec import Secret, pack
from storage.state import LOG_OBJECT_BYTES, LOG_PART_BYTES, LOGGED_BYTES, SavedState, UnitId

if TYPE_CHECKING:
    from elastic.operators.calls import UnitState
    from elastic.operators.stage_runner import StageRunner

_KIND = b"elastic.key_records"
_VERSION = b"elastic.version"  # of the operator that parted with the keys; older releases did not note it
_PROTOCOL = 5
_FRAME_BYTES = 20  # of a pickle around its values
_STATE_BYTES = 6  # of a state among these values
_ORDERS = pa.schema([("hash", pa.int64()), ("target", pa.int64())], metadata={_KIND: b"orders"})
_PARTS = pa.schema([("target", pa.int64()), ("state", pa.large_binary())], metadata={_KIND: b"parts"})
_LOGGED = LOGGED_BYTES.metadata


class RecordBytes(NamedTuple):
    """Bytes that the parts of moving keys take in the log besides the states of these keys."""

    node: float = 0.0  # for every node that parts with keys
    target: float = 0.0  # for every pair of such a node and a unit that gets keys of it
    pair: float = 0.0  # for every pair of a unit that parts with keys and a unit that gets some of them

    def with_part(self, part: float) -> Self:
        """Return the same where a part takes that much besides the states of its keys, as nodes have measured."""
        return self._replace(pair=max(self.pair, part + _STATE_BYTES))


NO_RECORDS = RecordBytes()


def log_orders(orders: Mapping[int, KeyOrders]) -> dict[int, pa.Table]:
    """Return the records that order units, by number, to part with keys."""
    return {unit: pa.table([one.hashes, one.targets], schema=_ORDERS) for unit, one in orders.items()}


def log_parts(parts: Sequence[pa.Table]) -> Mapping[int, bytes]:
    """Return parts that `part_keys` returned by the number of the unit that each is for, in their order."""
    records = pa.concat_tables(parts)
    version = _version_of(parts[0])
    slices = split(records, records["target"].to_numpy()).slices()
    return {
        unit: pickle.dumps((version, *one["state"].to_pylist()), protocol=_PROTOCOL) for unit, one in slices.items()
    }


def without_kind(rows: pa.Table) -> pa.Table:
    """Return the rows of a user, which are neither orders nor parts even if their metadata says so."""
    metadata = rows.schema.metadata or {}
    return rows.replace_schema_metadata(None) if not metadata.keys().isdisjoint((_KIND, *_LOGGED)) else rows


def are_orders(slices: Sequence[pa.Table]) -> bool:
    return _has_kind(slices, _ORDERS)


def are_parts(slices: Sequence[pa.Table]) -> bool:
    return _has_kind(slices, _PARTS) or (bool(slices) and slices[0].schema.metadata == _LOGGED)


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
    columns = [target for target, _ in parts], [_pickle_part(part) for _, part in parts]
    return pa.table(list(columns), schema=_PARTS.with_metadata({_KIND: b"parts", _VERSION: runner.version.encode()}))


def join_parts(runner: "StageRunner", state: "UnitState", parts: Sequence[pa.Table], unit: UnitId) -> None:
    """Put these parts into the state of a unit, in the order of the log; parts of an older version are upgraded."""
    for table in parts:
        version, states = _read_parts(table)
        for part in states:
            meta = {} if version is None else {VERSION: version}
            runner.join(state, runner.load(SavedState(part, meta), unit))


def measure_records(runner: "StageRunner") -> RecordBytes:
    """Return what records take for this stage: a part without keys is what it takes besides their states."""
    try:
        empty = runner.capture(runner.new_state())
    except Exception:  # noqa: BLE001 - a user's operator, which need not have a state before it is opened
        empty = None
    part = _pickle_part(empty)
    secret = Secret.random()
    packed = len(pack({"0": part}, key="", secret=secret)) - len(pack({"0": b""}, key="", secret=secret))
    return RecordBytes(LOG_OBJECT_BYTES, LOG_PART_BYTES + _FRAME_BYTES, packed + _STATE_BYTES)


def measure_part(runner: "StageRunner", state: "UnitState") -> int:
    """Return the bytes of a part with this state."""
    return len(_pickle_part(runner.capture(state)))


def _pickle_part(captured: Any) -> bytes:
    return pickle.dumps(captured, protocol=_PROTOCOL)


def _read_parts(table: pa.Table) -> tuple[str | None, list[Any]]:
    """Return the version of the operator that parted with the keys, None if it was not noted, and the states.

    Older releases logged parts as tables.
    """
    # The log object is signed, so that what is unpickled was pickled here.
    if table.schema.metadata == _LOGGED:
        [data] = table.column(0)
        version, *states = pickle.loads(data.as_buffer())  # noqa: S301 - signed, as above
    else:
        version, states = _version_of(table), [data.as_buffer() for data in table["state"]]
    return version, [pickle.loads(one) for one in states]  # noqa: S301 - signed, as above


def _version_of(parts: pa.Table) -> str | None:
    noted = parts.schema.metadata.get(_VERSION)
    return None if noted is None else noted.decode()


def _has_kind(slices: Sequence[pa.Table], schema: pa.Schema) -> bool:
    return bool(slices) and (slices[0].schema.metadata or {}).get(_KIND) == schema.metadata[_KIND]
