"""The input log: the rows of every batch, durable before the batch counts, readable task by task.

One object holds what one source partition sent in one round of one batch, with one part per task; a partition that sent
much is logged in several objects, its chunks, so that nobody has to hold it all. Every append makes a new object with a
name of its own, even if the same rows were appended before (a Spark task that is retried, or two attempts at once):
nothing is ever overwritten. Which of them count is for the commit of the batch to say, by naming their refs; the others
are invisible, and are collected with their batch.

Records that an operator feeds back are logged the same way by who emitted them, with the number of the round.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from storage.codec import Header, Secret, fetch_header, pack, unpack_part
from storage.errors import InvalidStorageInput
from storage.state.paths import Paths
from storage.state.refs import LogRef
from storage.stores.protocol import Store

_SMALL_GAP_BYTES = 16 * 1024  # reading over it costs less than another request
_AHEAD = 8  # log objects fetched at once while replaying: a store answers in milliseconds, and there may be thousands


class Slice(NamedTuple):
    """The rows of one task from one log object."""

    ref: LogRef
    task: int
    rows: pa.Table


class InputLog:
    """The input log of one operator; safe to use from many threads and processes."""

    def __init__(self, store: Store, secret: Secret, operator: str, *, compression: str = "auto") -> None:
        self._store = store
        self._secret = secret
        self._paths = Paths(operator)
        self._compression = compression

    def append(
        self,
        batch: int,
        source_partition: int,
        slices: Mapping[int, pa.Table | pa.RecordBatch],
        *,
        round: int = 0,  # noqa: A002 - the word of the domain
        chunk: int = 0,
        meta: Mapping[str, Any] | None = None,
    ) -> LogRef:
        """Make the rows durable; they count when the commit of the batch names the ref."""
        return self.append_as(LogRef.new(batch, round, source_partition, chunk), slices, meta=meta)

    def append_as(
        self,
        ref: LogRef,
        slices: Mapping[int, pa.Table | pa.RecordBatch],
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> LogRef:
        """The same under a new ref that others were told of before; safe to repeat with the same rows."""
        tables = {task: _table(rows) for task, rows in slices.items()}
        parts = {str(task): tables[task] for task in sorted(tables) if tables[task].num_rows}
        key = self._paths.log(ref)
        data = pack(parts, key=key, secret=self._secret, compression=self._compression, meta=meta)
        self._store.put(key, data)
        return replace(ref, size=len(data))

    def read(self, ref: LogRef, tasks: Iterable[int]) -> dict[int, pa.Table]:
        """The rows of some tasks, in order, without tasks that have none; fetches the header and their parts only."""
        key = self._paths.log(ref)
        prefix, header = fetch_header(self._store, key, self._secret)
        wanted = [task for task in sorted(set(tasks)) if str(task) in header.parts]
        found = {}
        for group in _neighbours(header, wanted):
            start, stop = header.parts[str(group[0])].offset, header.parts[str(group[-1])].stop
            data = prefix[start:stop] if stop <= len(prefix) else self._store.get_range(key, start, stop)
            for task in group:
                part = header.parts[str(task)]
                found[task] = unpack_part(header, part.name, data[part.offset - start : part.stop - start])
        return found

    def replay(self, log: Iterable[LogRef], after: Mapping[int, int], up_to: int) -> Iterator[Slice]:
        """Rows of the tasks in `after`, each from the batch after the one given there, through batch `up_to`.

        `log` is what was committed (`Manifest.log`), `after` what the states include (`Units.through`). The order is
        that of (batch, round, source partition, chunk), then tasks; a task's rows keep the order in which they were
        appended.
        """
        needed = []
        for ref in sorted(log):
            tasks = [task for task, batch in after.items() if batch < ref.batch <= up_to]
            if tasks:
                needed.append((ref, tasks))
        return self._fetched(iter(needed))

    def _fetched(self, needed: Iterator[tuple[LogRef, list[int]]]) -> Iterator[Slice]:
        with ThreadPoolExecutor(_AHEAD, thread_name_prefix="replay") as executor:

            def start(count: int) -> Iterator[tuple[LogRef, Future[dict[int, pa.Table]]]]:
                return ((ref, executor.submit(self.read, ref, tasks)) for ref, tasks in islice(needed, count))

            under_way = deque(start(_AHEAD))
            while under_way:
                ref, future = under_way.popleft()
                slices = future.result()
                under_way.extend(start(1))
                for task, rows in slices.items():
                    yield Slice(ref, task, rows)


def _table(rows: pa.Table | pa.RecordBatch) -> pa.Table:
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if not isinstance(rows, pa.Table):
        raise InvalidStorageInput(f"rows of type {type(rows).__name__} cannot be logged. Give Arrow tables or batches.")
    return rows


def _neighbours(header: Header, tasks: list[int]) -> list[list[int]]:
    """Tasks whose parts are so near to each other that one request for all is cheaper."""
    groups: list[list[int]] = []
    for task in tasks:
        part = header.parts[str(task)]
        if groups and part.offset - header.parts[str(groups[-1][-1])].stop <= _SMALL_GAP_BYTES:
            groups[-1].append(task)
        else:
            groups.append([task])
    return groups
