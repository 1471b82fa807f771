"""The rows of a step: those that senders staged on the node at once, others from the log, ahead of their turn."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from elastic import threads
from elastic.core.ids import Batch, UnitId
from elastic.core.steps import Position, Step
from elastic.core.unit_host import ReadyStep
from elastic.node.context import NodeContext
from elastic.node.throttle import lower_priority
from elastic.retry import retry_while_unavailable
from elastic.wire import Refused
from storage.state import InputLog, LogRef

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Rows = dict[int, list[pa.Table]]  # by unit number
_STANDBY_THREADS = 2  # no result waits for rows of standbys
_STEPS_AHEAD = 8  # fetched while one is processed: a store answers in milliseconds, a replay may have thousands


class _Staged(NamedTuple):
    batch: int
    covers: Sequence[Sequence[int]]  # ranges of unit numbers, [first, last + 1), whose rows are all here
    slices: dict[int, pa.Table]  # by unit number
    size: int

    def has(self, number: int) -> bool:
        return any(start <= number < stop for start, stop in self.covers)

    def merge(self, other: "_Staged") -> "_Staged":
        """Return both together: rows of several stages in the same log object come one by one."""
        slices = {**self.slices, **other.slices}
        return _Staged(self.batch, [*self.covers, *other.covers], slices, self.size + other.size)


class StagedRows:
    """Rows that senders uploaded before their batch was committed, by log object, within a limit of bytes.

    A cache of the log, which has everything. An entry says which units it covers: of these it has all rows, perhaps
    none; of others it knows nothing. Safe to use from many threads.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._entries: dict[str, _Staged] = {}
        self._lock = threads.Lock()
        self._done = -1  # newest batch that needs nothing more
        self.size = 0

    def upload(self, header: dict[str, Any], table: pa.Table) -> None:
        """Handle an upload: the rows are sorted by unit, and `offsets` says where each of `unit_numbers` ends."""
        ref = LogRef.from_json(header["ref"])
        slices, start = {}, 0
        for number, stop in zip(header["unit_numbers"], header["offsets"], strict=True):
            slices[number] = table.slice(start, stop - start)
            start = stop
        self._put(ref, _Staged(ref.batch, header["covers"], slices, table.nbytes))

    def select_covered(self, logs: Sequence[LogRef], units: Sequence[UnitId]) -> tuple[UnitId, ...]:
        """Return those of the units whose rows in all these log objects are here."""
        with self._lock:
            found = [self._entries.get(ref.nonce) for ref in logs]
        entries = [entry for entry in found if entry is not None]
        if len(entries) < len(found):
            return ()
        return tuple(unit for unit in units if all(entry.has(unit.number) for entry in entries))

    def rows(self, logs: Sequence[LogRef], units: Sequence[UnitId]) -> Rows:
        """Return the slices of covered units, in the order of the log."""
        with self._lock:
            entries = [self._entries[ref.nonce] for ref in logs]
        numbers = [unit.number for unit in units]
        found: Rows = {}
        for entry in entries:
            for number in numbers:
                if number in entry.slices:
                    found.setdefault(number, []).append(entry.slices[number])
        return found

    def forget(self, through: Batch) -> None:
        """Drop the rows of batches up to this one, committed or not, and refuse more of them."""
        with self._lock:
            self._done = max(self._done, through)
            for nonce in [nonce for nonce, entry in self._entries.items() if entry.batch <= through]:
                self.size -= self._entries.pop(nonce).size

    def _put(self, ref: LogRef, entry: _Staged) -> None:
        with self._lock:
            if ref.batch <= self._done:
                raise Refused(f"all units on this node have taken batch {ref.batch}")
            if self.size + entry.size > self._limit:
                raise Refused(f"{self.size} of {self._limit} bytes are staged: no room for {entry.size} more")
            known = self._entries.get(ref.nonce)
            if known is None or any(covered not in known.covers for covered in entry.covers):
                self._entries[ref.nonce] = entry if known is None else known.merge(entry)
                self.size += entry.size


class _Reading(NamedTuple):
    """Rows of some units that are being read, perhaps for standbys and so at low priority."""

    units: tuple[UnitId, ...]
    standby: bool
    rows: "Future[Rows]"

    def serves(self, *, standby: bool) -> bool:
        """Whether units of that role may wait for it; a result never waits for what is read at low priority."""
        return standby or not self.standby or self.rows.done()


class RowFetcher:
    """Finds the rows of ready steps. Only the working thread calls it; it is woken when it should ask again."""

    def __init__(self, context: NodeContext, staged: StagedRows, log: InputLog) -> None:
        self._context = context
        self._staged = staged
        self._log = log
        self._executor = threads.ThreadPool(_STEPS_AHEAD, "fetch")
        self._standby_executor = threads.ThreadPool(_STANDBY_THREADS, "fetch-standby", initializer=lower_priority)
        self._under_way: dict[Position, list[_Reading]] = {}

    def fetch(self, ready: ReadyStep, following: Iterable[Step]) -> tuple[ReadyStep, Rows] | None:
        """Return as much of the step as has its rows here, with slices in the order of the log; None if nothing has.

        Units whose rows are staged do not wait for units whose rows must be read. Of the `following` steps some are
        read ahead.
        """
        staged = self._staged.select_covered(ready.step.logs, ready.units)
        if staged:
            return ready._replace(units=staged), self._staged.rows(ready.step.logs, staged)
        for reading in self._under_way.get(ready.step.position, []):
            if reading.rows.done() and set(reading.units) & set(ready.units):
                self._under_way[ready.step.position].remove(reading)
                return ready._replace(units=reading.units), reading.rows.result()
        for step in chain([ready.step], following):
            self._start(step, ready.units, standby=ready.standby)
            if len(self._under_way) >= _STEPS_AHEAD:
                break
        return None

    def forget(self, through: Batch) -> None:
        """Drop what was read of batches up to this one."""
        for position in [position for position in self._under_way if position.batch <= through]:
            del self._under_way[position]

    def close(self) -> None:
        for executor in (self._executor, self._standby_executor):
            executor.shutdown(wait=False, cancel_futures=True)

    def _start(self, step: Step, units: tuple[UnitId, ...], *, standby: bool) -> None:
        """Read the rows that are neither staged nor being read."""
        started = self._under_way.setdefault(step.position, [])
        staged = self._staged.select_covered(step.logs, units)
        expected = (reading.units for reading in started if reading.serves(standby=standby))
        missing = tuple(sorted(set(units).difference(staged, *expected)))
        if missing:
            executor: Executor = self._standby_executor if standby else self._executor
            future = executor.submit(self._read, step.logs, missing)
            started.append(_Reading(missing, standby, future))
            future.add_done_callback(lambda _: self._context.wake())

    def _read(self, logs: Iterable[LogRef], units: tuple[UnitId, ...]) -> Rows:
        numbers = [unit.number for unit in units]
        found: Rows = {}
        for ref in logs:
            slices = retry_while_unavailable(
                lambda ref=ref: self._log.read(ref, numbers),  # type: ignore[misc]
                self._context.settings.store_retry_seconds,
                self._context.closing,
            )
            for number, rows in slices.items():
                found.setdefault(number, []).append(rows)
        return found
