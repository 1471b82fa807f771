"""The sender of one source partition of one batch: splits rows by unit, logs them, and brings them to the nodes.

Only the log matters. A node that cannot be reached, has no room or moved on reads the rows from there, so nothing that
happens to nodes can fail a batch. A sender reports what is wrong with rows to the driver instead of raising it: Spark
would repeat what cannot succeed.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from elastic import threads
from elastic.errors import ElasticError
from elastic.ingest.batch_spec import HASH, BatchSpec
from elastic.ingest.row_checks import check_rows
from elastic.operators.event_times import to_milliseconds
from elastic.operators.measured import mark_group_rows
from elastic.retry import retry_while_unavailable
from elastic.routing import SplitRows, UnitChooser, hash_rows, split
from elastic.routing.unit_numbers import to_ranges
from elastic.wire import Network, Peer, PeerUnavailable, Refused
from elastic.wire.failures import failure_from_json, failure_to_json
from storage import Store
from storage.errors import StorageError
from storage.state import InputLog, LogRef

_UPLOAD_SECONDS = 5.0  # longer, and the node reads the log sooner than the upload arrives
_UPLOADS = 8  # at a time


@dataclass(frozen=True)
class PartitionStatus:
    """What a sender logged: the log objects, the rows in them, and their latest event time; or why it could not."""

    logs: tuple[LogRef, ...] = ()
    rows: int = 0
    bytes: int = 0
    latest_ms: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)  # that the rows will take, by node, if that is estimated
    failure: dict[str, Any] | None = None

    def check(self) -> None:
        """Raise the error of a sender that failed."""
        if self.failure is not None:
            raise failure_from_json(self.failure)

    def to_json(self) -> str:
        return json.dumps({**vars(self), "logs": [ref.to_json() for ref in self.logs]})

    @classmethod
    def from_json(cls, text: str) -> Self:
        document = json.loads(text)
        return cls(**{**document, "logs": tuple(map(LogRef.from_json, document["logs"]))})


class Connections:
    """The stores and nodes that the senders of one process have opened, and what they know of the load of nodes.

    All of that outlives a batch, as the process does.
    """

    def __init__(self, network: Network) -> None:
        self.uploads = threads.ThreadPool(_UPLOADS, "upload")
        self._network = network
        self._stores: dict[str, Store] = {}
        self._peers: dict[tuple[str, str], Peer] = {}
        self._choosers: dict[str, UnitChooser] = {}

    def store(self, spec: BatchSpec) -> Store:
        key = f"{spec.store.url} {json.dumps(spec.store.settings, sort_keys=True)}"
        if key not in self._stores:
            self._stores[key] = spec.store.open_when_available(spec.settings.store_retry_seconds)
        return self._stores[key]

    def chooser(self, spec: BatchSpec) -> UnitChooser:
        """Return the chooser of one life of a job, which the token stands for."""
        return self._choosers.setdefault(spec.token, UnitChooser(spec.settings.key_interval_seconds))

    def peer(self, address: str, token: str) -> Peer:
        key = (address, token)
        if key not in self._peers:
            self._peers[key] = self._network.connect(address, token)
        return self._peers[key]

    def drop_peer(self, address: str, token: str) -> None:
        self._peers.pop((address, token), None)


def send_partition(
    spec: BatchSpec, partition: int, batches: Iterable[pa.RecordBatch], connections: Connections
) -> PartitionStatus:
    """Log the rows of a partition and bring them to the nodes; errors of rows and store are in the status."""
    try:
        return _PartitionSender(spec, partition, connections).send_all(batches)
    except (ElasticError, StorageError) as error:
        return PartitionStatus(failure=failure_to_json(error))


class _PartitionSender:
    def __init__(self, spec: BatchSpec, partition: int, connections: Connections) -> None:
        self._spec = spec
        self._partition = partition
        self._connections = connections
        self._log = InputLog(
            connections.store(spec), spec.store.secret, spec.job, compression=spec.settings.compression
        )
        forecast = spec.forecast.of_sender(partition, spec.senders)
        self._placer = connections.chooser(spec).place(spec.routing, 0, forecast)
        self._refs: list[LogRef] = []
        self._rows = 0
        self._bytes = 0
        self._latest_ms: int | None = None

    def send_all(self, batches: Iterable[pa.RecordBatch]) -> PartitionStatus:
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            waiting.append(batch)
            size += batch.nbytes
            if size >= self._spec.settings.chunk_bytes:
                self._send(pa.Table.from_batches(waiting))
                waiting, size = [], 0
        if waiting:
            self._send(pa.Table.from_batches(waiting))
        return PartitionStatus(tuple(self._refs), self._rows, self._bytes, self._latest_ms, dict(self._placer.seconds))

    def _send(self, rows: pa.Table) -> None:
        rows = check_rows(rows, self._spec)
        self._note_event_time(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._spec.combine is not None and rows.num_rows:
            rows = self._spec.combine(rows)
        if not rows.num_rows:
            return
        parts = split(*self._with_unit_numbers(rows))
        ref = LogRef.new(self._spec.batch, 0, self._partition, len(self._refs))
        destinations = self._destinations(parts).items()
        uploads = [self._connections.uploads.submit(self._upload, ref, node, part) for node, part in destinations]
        slices = parts.slices()
        retry_seconds = self._spec.settings.store_retry_seconds
        self._refs.append(retry_while_unavailable(lambda: self._log.append_as(ref, slices), retry_seconds))
        for upload in uploads:
            upload.result()

    def _with_unit_numbers(self, rows: pa.Table) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """Return the rows and the unit of each. Hashes come with the rows, or are computed where that is cheaper."""
        if HASH in rows.column_names:
            hashes = rows[HASH].to_numpy()
            rows = rows.drop_columns([HASH])
        else:
            hashes = hash_rows(rows, self._spec.key)
        return mark_group_rows(rows, self._placer.group_rows), self._placer.unit_numbers(hashes)

    def _destinations(self, parts: SplitRows) -> dict[str, SplitRows]:
        """Return what each node gets; nodes without rows learn that too, or they would have to read the log."""
        nothing = SplitRows(parts.table.slice(0, 0), (), (0,))
        with_rows = parts.for_node(self._spec.routing)
        return {node: with_rows.get(node, nothing) for node in self._spec.addresses}

    def _upload(self, ref: LogRef, node: str, part: SplitRows) -> None:
        spec = self._spec
        header = {
            "ref": ref.to_json(),
            "covers": to_ranges(unit.number for unit in spec.routing.units_on(node, [0])),
            "unit_numbers": part.unit_numbers,
            "offsets": part.offsets[1:],
        }
        address = spec.addresses[node]
        try:
            self._connections.peer(address, spec.token).upload(header, part.table, timeout=_UPLOAD_SECONDS)
        except (PeerUnavailable, Refused):
            self._connections.drop_peer(address, spec.token)  # the node reads the log

    def _note_event_time(self, rows: pa.Table) -> None:
        if self._spec.event_time is not None:
            latest = pc.max(rows[self._spec.event_time])
            latest_ms = to_milliseconds(pa.array([latest], latest.type))[0].as_py()
            if latest_ms is not None:
                self._latest_ms = latest_ms if self._latest_ms is None else max(self._latest_ms, latest_ms)
