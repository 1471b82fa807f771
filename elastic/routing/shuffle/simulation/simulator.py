"""Simulates k operator instances that a scheduler feeds, as the event heap does, a hundred times as fast.

Messages are rare: a few for each window of rows. Rows between two of them run in one compiled loop; machines, requests
and messages are those of the event heap. Without numba the event heap itself runs.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.compiled_loops import load_compiled
from elastic.routing.shuffle.machines import SchedulerState
from elastic.routing.shuffle.schedulers import Nodes
from elastic.routing.shuffle.simulation.event_heap import Trace, simulate_by_events
from elastic.routing.shuffle.simulation.instance import Message, OperatorInstance
from elastic.routing.shuffle.simulation.readings import READINGS, Reading
from elastic.routing.shuffle.simulation.scheduler import (
    FullKnowledge,
    PosgScheduler,
    RoundRobin,
)
from elastic.routing.shuffle.simulation.stream import SimulatedStream
from elastic.routing.shuffle.sketch import ExecutionSketch, Floats, SketchShape

ROUND_ROBIN, FULL_KNOWLEDGE = "round-robin", "full-knowledge"
_ROUND_ROBIN, _GREEDY, _FULL_KNOWLEDGE = range(3)  # the modes of the compiled loop


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """The outcome of each row, and the (row, new state) of the scheduler's story; empty if it has no states."""

    instances: Nodes
    completion: Floats
    story: tuple[tuple[int, SchedulerState], ...] = ()
    messages: int = 0

    @property
    def mean_completion(self) -> float:
        """The mean seconds from the arrival of a row to its end; paper: L bar."""
        return float(self.completion.mean())


class _Delivery(NamedTuple):
    time: float
    instance: int
    sequence: int
    message: Message


def simulate(
    stream: SimulatedStream,
    policy: str | Reading,
    shape: SketchShape | None = None,
    *,
    delay: float = 0.0,
    by_events: bool = False,
) -> SimulationResult:
    """Simulate a stream under round-robin, full knowledge, or a reading of POSG, given as such or by its name.

    Messages of instances reach the scheduler `delay` seconds after they were sent. `by_events` asks for the reference.
    """
    if not delay >= 0:
        raise InvalidJob(f"messages cannot take {delay} s. Use a delay of at least 0.")
    shape = shape or SketchShape.of_precision()
    reading = policy if isinstance(policy, Reading) else READINGS.get(policy, Reading())
    scheduler = _create_scheduler(stream, policy, reading, shape)
    sketches = _Sketches.empty(stream.instances, shape)
    instances = [
        OperatorInstance(number, reading, ExecutionSketch(shape, *matrices))
        for number, matrices in enumerate(zip(*sketches, strict=True))
    ]
    kernel: Any = None if by_events else load_compiled("shuffle.simulation.compiled_simulation", "run_rows")
    if kernel is None:
        trace = simulate_by_events(stream, scheduler, instances, shape, delay)
    else:
        trace = _Run(stream, scheduler, instances, sketches, reading, shape, delay, kernel).run()
    if isinstance(scheduler, PosgScheduler):
        return SimulationResult(*trace, tuple(scheduler.story), scheduler.messages)
    return SimulationResult(*trace)


def _create_scheduler(
    stream: SimulatedStream, policy: str | Reading, reading: Reading, shape: SketchShape
) -> RoundRobin | FullKnowledge | PosgScheduler:
    if policy == ROUND_ROBIN:
        return RoundRobin(stream)
    if policy == FULL_KNOWLEDGE:
        return FullKnowledge(stream)
    if isinstance(policy, str) and policy not in READINGS:
        known = ", ".join(map(repr, (ROUND_ROBIN, FULL_KNOWLEDGE, *READINGS)))
        raise InvalidJob(f"unknown policy {policy!r}. Use one of {known}, or a Reading.")
    return PosgScheduler(stream.instances, reading, shape)


class _Sketches(NamedTuple):
    """The matrices of all instances, which the compiled loop fills and the instances read."""

    frequencies: npt.NDArray[np.int64]
    seconds: Floats

    @classmethod
    def empty(cls, instances: int, shape: SketchShape) -> "_Sketches":
        size = instances, shape.rows, shape.columns
        return cls(np.zeros(size, np.int64), np.zeros(size))


class _Run:
    """One simulation: rows from message to message."""

    def __init__(
        self,
        stream: SimulatedStream,
        scheduler: RoundRobin | FullKnowledge | PosgScheduler,
        instances: Sequence[OperatorInstance],
        sketches: _Sketches,
        reading: Reading,
        shape: SketchShape,
        delay: float,
        kernel: Any,
    ) -> None:
        self._stream, self._scheduler, self._instances, self._sketches = stream, scheduler, instances, sketches
        self._reading, self._delay, self._kernel = reading, delay, kernel
        self._posg = scheduler if isinstance(scheduler, PosgScheduler) else None
        self._columns = np.ascontiguousarray(shape.columns_of(stream.hashes).T)
        self._free, self._worked = np.zeros(stream.instances), np.zeros(stream.instances)
        self._executed = np.zeros(stream.instances, np.int64)  # rows of the current window
        self._trace = Trace(np.zeros(stream.rows, np.int64), np.zeros(stream.rows))
        self._pending: list[_Delivery] = []
        self._sent = 0
        cells: tuple[npt.NDArray[Any], ...] = np.zeros((1, 1, 1), np.int64), np.zeros((1, 1, 1)), self._free
        if self._posg is not None:
            cells = self._posg.frequencies, self._posg.seconds, self._posg.completion
        self._arrays: tuple[npt.NDArray[Any], ...] = (
            *(self._columns, stream.arrivals, stream.costs, stream.slowness, stream.phase_of),
            *cells,
            *(self._free, self._worked, self._executed),
            *self._sketches,
            *self._trace,
        )

    def run(self) -> Trace:
        row = 0
        while row < self._stream.rows:
            self._deliver(float(self._stream.arrivals[row]))
            if self._posg is not None:
                self._posg.begin_row(row)
            if self._posg is not None and self._posg.state is SchedulerState.SEND_ALL:
                row = self._send_request(self._posg, row)
            else:
                row = self._run_rows(row)
        self._deliver(math.inf)
        return self._trace

    def _deliver(self, now: float) -> None:
        while self._pending and self._pending[0].time <= now:
            self._scheduler.receive(heapq.heappop(self._pending).message)

    def _run_rows(self, row: int) -> int:
        """Run rows in the compiled loop; return the next one."""
        posg, stop = self._posg, self._stream.rows
        is_running = posg is not None and posg.state is SchedulerState.RUN
        if posg is not None and is_running and self._reading.sync_rows is not None:
            stop = min(stop, row + self._reading.sync_rows - posg.rows_since_sync)
        after, ended = self._kernel(
            self._mode(),
            row,
            stop,
            self._pending[0].time if self._pending else math.inf,
            self._stream.rows + 1 if posg is None else self._reading.window,
            posg is None or self._reading.skips_idle,
            *self._arrays,
        )
        if posg is not None:
            posg.row = after - 1
            posg.rows_since_sync += is_running * (after - row)
        if ended >= 0:
            self._instances[ended].end_window()
            self._collect(ended)
        return int(after)

    def _mode(self) -> int:
        if self._posg is None:
            return _ROUND_ROBIN if isinstance(self._scheduler, RoundRobin) else _FULL_KNOWLEDGE
        return _ROUND_ROBIN if self._posg.state is SchedulerState.ROUND_ROBIN else _GREEDY

    def _send_request(self, posg: PosgScheduler, row: int) -> int:
        """Run a row that carries a request; return the next one."""
        now, columns = float(self._stream.arrivals[row]), self._columns[row]
        number, request = posg.submit(row, columns, now)
        spent = self._stream.seconds(row, number)
        self._free[number] = max(self._free[number], now) + spent
        self._trace.instances[row], self._trace.completion[row] = number, self._free[number] - now
        self._worked[number] += spent
        self._executed[number] += 1
        instance = self._instances[number]
        instance.measure(columns, spent)
        if request is not None:
            instance.answer(request, float(self._worked[number]), float(self._free[number]))
        if self._executed[number] == self._reading.window:
            self._executed[number] = 0
            instance.end_window()
        self._collect(number)
        return row + 1

    def _collect(self, instance: int) -> None:
        """Send what an instance has to say after its last row."""
        for message in self._instances[instance].take_messages():
            self._sent += 1
            time = float(self._free[instance]) + self._delay
            heapq.heappush(self._pending, _Delivery(time, instance, self._sent, message))
