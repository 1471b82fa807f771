"""A sender: the rows of one source partition of one batch, split by slot, logged, and brought to the nodes.

Only the log matters. A node that cannot be reached, has no room or moved on reads the rows from there; so nothing that
happens to nodes can fail a batch. What is wrong with the rows is told to the driver, not raised: Spark would try again
what cannot succeed.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from elastic.errors import ElasticError
from elastic.operators.times import in_milliseconds
from elastic.routing import SplitRows, key_hash, split
from elastic.routing.slots import runs
from elastic.runtime.intake import checks
from elastic.runtime.intake.orders import HASH, Orders
from elastic.runtime.patience import patiently
from elastic.runtime.wire import Peer, PeerUnavailable, Refused
from elastic.runtime.wire.failures import failure_to_json
from storage import Store
from storage.errors import StorageError
from storage.state import InputLog, LogRef

STATUS_SCHEMA = "status string"
_UPLOAD_SECONDS = 5.0  # longer, and the node reads the log sooner than it is sent the rows

# Spark reuses its Python processes: connections outlive a batch.
_stores: dict[str, Store] = {}
_peers: dict[tuple[str, str], Peer] = {}
_uploads = ThreadPoolExecutor(8, thread_name_prefix="upload")


def send(orders: Orders, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row of JSON: what was logged, or why it was not."""
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    try:
        status = _Partition(orders, partition).send_all(batches)
    except (ElasticError, StorageError) as error:
        status = {"failure": failure_to_json(error)}
    yield pa.RecordBatch.from_pydict({"status": [json.dumps(status)]})


class _Partition:
    def __init__(self, orders: Orders, partition: int) -> None:
        self._orders = orders
        self._partition = partition
        self._log = InputLog(_store(orders), orders.store.secret, orders.job, compression=orders.settings.compression)
        self._refs: list[LogRef] = []
        self._rows = 0
        self._bytes = 0
        self._latest_ms: int | None = None

    def send_all(self, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            waiting.append(batch)
            size += batch.nbytes
            if size >= self._orders.settings.chunk_bytes:
                self._send(pa.Table.from_batches(waiting))
                waiting, size = [], 0
        if waiting:
            self._send(pa.Table.from_batches(waiting))
        return {
            "logs": [ref.to_json() for ref in self._refs],
            "rows": self._rows,
            "bytes": self._bytes,
            "latest_ms": self._latest_ms,
        }

    def _send(self, rows: pa.Table) -> None:
        rows = checks.checked(rows, self._orders)
        self._look_at_the_time(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._orders.combine is not None and rows.num_rows:
            rows = self._orders.combine(rows)
        if not rows.num_rows:
            return
        parts = split(*self._with_slots(rows))
        ref = LogRef.new(self._orders.batch, 0, self._partition, len(self._refs))
        uploads = [_uploads.submit(self._upload, ref, node, part) for node, part in self._destinations(parts).items()]
        slices = parts.slices()
        patience = self._orders.settings.store_patience_seconds
        self._refs.append(patiently(lambda: self._log.append_as(ref, slices), patience))
        for upload in uploads:
            upload.result()

    def _with_slots(self, rows: pa.Table) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The hash comes with the rows, or is computed here where that is cheaper than to bring it."""
        if HASH in rows.column_names:
            hashes = rows[HASH].to_numpy()
            rows = rows.drop_columns([HASH])
        else:
            hashes = key_hash([rows[name] for name in self._orders.key])
        return rows, self._orders.routing.slots_of(hashes, 0)

    def _destinations(self, parts: SplitRows) -> dict[str, SplitRows]:
        """Every node that has units; those without rows are told so, or they would have to look into the log."""
        nothing = SplitRows(parts.table.slice(0, 0), (), (0,))
        with_rows = parts.for_node(self._orders.routing)
        return {node: with_rows.get(node, nothing) for node in self._orders.addresses}

    def _upload(self, ref: LogRef, node: str, part: SplitRows) -> None:
        orders = self._orders
        header = {
            "ref": ref.to_json(),
            "covers": runs(orders.routing.slots_on(node, [0])),
            "slots": part.slots,
            "offsets": part.offsets[1:],
        }
        address = orders.addresses[node]
        try:
            _peer(address, orders.token).upload(header, part.table, timeout=_UPLOAD_SECONDS)
        except (PeerUnavailable, Refused):
            _peers.pop((address, orders.token), None)  # the node will read the log

    def _look_at_the_time(self, rows: pa.Table) -> None:
        if self._orders.event_time is not None:
            latest = pc.max(rows[self._orders.event_time])
            latest_ms = in_milliseconds(pa.array([latest], latest.type))[0].as_py()
            if latest_ms is not None:
                self._latest_ms = latest_ms if self._latest_ms is None else max(self._latest_ms, latest_ms)


def _store(orders: Orders) -> Store:
    key = f"{orders.store.url} {json.dumps(orders.store.settings, sort_keys=True)}"
    if key not in _stores:
        _stores[key] = orders.store.open_patiently(orders.settings.store_patience_seconds)
    return _stores[key]


def _peer(address: str, token: str) -> Peer:
    key = (address, token)
    if key not in _peers:
        _peers[key] = Peer(address, token)
    return _peers[key]
