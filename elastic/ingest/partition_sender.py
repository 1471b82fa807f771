"""The sender of one source partition of one batch: splits rows by unit, logs them, and brings them to the nodes.

In a job with several inputs the rows of a partition are mostly of one of them, and a column says of which. They go to
every stage that reads this input.

Only the log matters. A node that cannot be reached, has no room or moved on reads the rows from there, so nothing that
happens to nodes can fail a batch. A sender reports what is wrong with rows to the driver instead of raising it: Spark
would repeat what cannot succeed.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from elastic import threads
from elastic.errors import ElasticError
from elastic.ingest.batch_spec import HASH, INPUT_NUMBER, BatchSpec, InputPlan, StageFeed
from elastic.ingest.row_checks import check_keys, check_sizes
from elastic.operators.event_times import to_milliseconds
from elastic.operators.measured import mark_group_rows
from elastic.retry import retry_while_unavailable
from elastic.routing import RowPlacer, SplitRows, UnitChooser, hash_rows, split
from elastic.routing.shuffle import NO_FORECAST
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
    """The result of a sender: the log objects, and the rows in them; or the error that stopped it.

    `seen` has the latest event time of each input that has rows, by its number.
    """

    logs: tuple[LogRef, ...] = ()
    rows: int = 0
    bytes: int = 0
    seen: tuple[tuple[int, int | None], ...] = ()
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
        logs, seen = tuple(map(LogRef.from_json, document["logs"])), tuple(map(tuple, document["seen"]))
        return cls(**{**document, "logs": logs, "seen": seen})


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
        self._placers = {feed.stage: self._placer(feed.stage) for plan in spec.inputs for feed in plan.feeds}
        self._refs: list[LogRef] = []
        self._rows = 0
        self._bytes = 0
        self._seen: dict[int, int | None] = {}

    def send_all(self, batches: Iterable[pa.RecordBatch]) -> PartitionStatus:
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            waiting.append(batch)
            size += batch.nbytes
            if size >= self._spec.settings.chunk_bytes:
                self._send_inputs(pa.Table.from_batches(waiting))
                waiting, size = [], 0
        if waiting:
            self._send_inputs(pa.Table.from_batches(waiting))
        seconds: Counter[str] = Counter()
        for placer in self._placers.values():
            seconds.update(placer.seconds)
        seen = tuple(sorted(self._seen.items()))
        return PartitionStatus(tuple(self._refs), self._rows, self._bytes, seen, dict(seconds))

    def _placer(self, stage: int) -> RowPlacer:
        forecast = self._spec.forecasts.get(stage, NO_FORECAST).of_sender(self._partition, self._spec.senders)
        return self._connections.chooser(self._spec).place(self._spec.routing, stage, forecast)

    def _send_inputs(self, rows: pa.Table) -> None:
        for number, some in _split_inputs(rows):
            self._send(number, some)

    def _send(self, number: int, rows: pa.Table) -> None:
        """Log the rows of an input once, with what each stage that reads it gets, and bring them to the nodes."""
        plan = self._spec.inputs[number]
        rows = plan.unpack(rows)
        check_sizes(rows, self._spec)
        by_feed = [(feed, self._adapt(rows, feed)) for feed in plan.feeds]
        # Rows that are dropped because they have no key do not count, unless another stage may have taken them.
        counted = by_feed[0][1] if len(by_feed) == 1 else rows
        self._note(number, plan, counted)
        self._rows += counted.num_rows
        self._bytes += rows.nbytes
        parts = [
            (feed.stage, split(*self._with_unit_numbers(combined, feed)))
            for feed, adapted in by_feed
            if (combined := _combine(adapted, feed)).num_rows
        ]
        if parts:
            self._log_and_upload(parts)

    def _adapt(self, rows: pa.Table, feed: StageFeed) -> pa.Table:
        return check_keys(rows if feed.feed is None else feed.feed(rows), self._spec, feed)

    def _log_and_upload(self, parts: Sequence[tuple[int, SplitRows]]) -> None:
        ref = LogRef.new(self._spec.batch, 0, self._partition, len(self._refs))
        uploads = [
            self._connections.uploads.submit(self._upload, ref, node, part, covered)
            for covered, stage_parts in self._group_by_coverage(parts)
            for node, part in self._destinations(stage_parts).items()
        ]
        slices: dict[int, pa.Table] = {}
        for _, stage_parts in parts:
            slices.update(stage_parts.slices())
        retry_seconds = self._spec.settings.store_retry_seconds
        self._refs.append(retry_while_unavailable(lambda: self._log.append_as(ref, slices), retry_seconds))
        for upload in uploads:
            upload.result()

    def _group_by_coverage(self, parts: Sequence[tuple[int, SplitRows]]) -> Iterator[tuple[list[int], SplitRows]]:
        """Yield the rows of each stage with the stages that an upload of them covers.

        The first one covers also all stages that get no rows: a node that had to look for these would read the log.
        """
        of_stages = {stage for stage, _ in parts}
        without = [stage for stage in range(self._spec.stages) if stage not in of_stages]
        for stage, stage_parts in parts:
            yield sorted([stage, *without]), stage_parts
            without = []

    def _with_unit_numbers(self, rows: pa.Table, feed: StageFeed) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """Return the rows and the unit of each. Hashes come with the rows, or are computed where that is cheaper."""
        if HASH in rows.column_names:
            hashes = rows[HASH].to_numpy()
            rows = rows.drop_columns([HASH])
        else:
            hashes = hash_rows(rows, feed.key)
        placer = self._placers[feed.stage]
        return mark_group_rows(rows, placer.group_rows), placer.unit_numbers(hashes)

    def _destinations(self, parts: SplitRows) -> dict[str, SplitRows]:
        """Return what each node gets; nodes without rows learn that too, or they would have to read the log."""
        nothing = SplitRows(parts.table.slice(0, 0), (), (0,))
        with_rows = parts.for_node(self._spec.routing)
        return {node: with_rows.get(node, nothing) for node in self._spec.addresses}

    def _upload(self, ref: LogRef, node: str, part: SplitRows, stages: Sequence[int]) -> None:
        spec = self._spec
        header = {
            "ref": ref.to_json(),
            "covers": to_ranges(unit.number for unit in spec.routing.units_on(node, stages)),
            "unit_numbers": part.unit_numbers,
            "offsets": part.offsets[1:],
        }
        address = spec.addresses[node]
        try:
            self._connections.peer(address, spec.token).upload(header, part.table, timeout=_UPLOAD_SECONDS)
        except (PeerUnavailable, Refused):
            self._connections.drop_peer(address, spec.token)  # the node reads the log

    def _note(self, number: int, plan: InputPlan, rows: pa.Table) -> None:
        """Note that an input has rows, and their latest event time."""
        if not rows.num_rows:
            return
        known = self._seen.setdefault(number, None)
        if plan.event_time is not None:
            latest = pc.max(rows[plan.event_time])
            latest_ms = to_milliseconds(pa.array([latest], latest.type))[0].as_py()
            if latest_ms is not None:
                self._seen[number] = latest_ms if known is None else max(known, latest_ms)


def _combine(rows: pa.Table, feed: StageFeed) -> pa.Table:
    return feed.combine(rows) if feed.combine is not None and rows.num_rows else rows


def _split_inputs(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each input. Spark keeps them in partitions of their own, unless it joins those of a union."""
    if INPUT_NUMBER not in rows.column_names:
        yield 0, rows
        return
    found = sorted(rows[INPUT_NUMBER].unique().to_pylist())
    for number in found:
        yield number, rows if len(found) == 1 else rows.filter(pc.equal(rows[INPUT_NUMBER], number))
