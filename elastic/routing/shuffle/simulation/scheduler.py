"""Schedulers that see rows one by one: POSG with its machine (Figure 3), and the two that it is compared with."""

from typing import NamedTuple, Protocol

import numpy as np

from elastic.routing.shuffle.estimates import CostEstimates, pool
from elastic.routing.shuffle.machines import (
    SCHEDULER_TABLE,
    SchedulerCommand,
    SchedulerEvent,
    SchedulerState,
    next_state,
)
from elastic.routing.shuffle.simulation.instance import Message, SketchReport, SyncReply, SyncRequest
from elastic.routing.shuffle.simulation.readings import Reading
from elastic.routing.shuffle.simulation.stream import SimulatedStream
from elastic.routing.shuffle.sketch import Columns, ExecutionSketch, Floats, SketchShape


class Submission(NamedTuple):
    """The instance that takes a row, and the request that rides on it."""

    instance: int
    request: SyncRequest | None = None


class OnlineScheduler(Protocol):
    """Chooses an instance for each row as it arrives."""

    def submit(self, row: int, columns: Columns, now: float) -> Submission: ...

    def receive(self, message: Message) -> None: ...


class RoundRobin:
    """Rows go to instances in turn."""

    def __init__(self, stream: SimulatedStream) -> None:
        self._instances = stream.instances

    def submit(self, row: int, columns: Columns, now: float) -> Submission:  # noqa: ARG002
        return Submission(row % self._instances)

    def receive(self, message: Message) -> None: ...


class FullKnowledge:
    """The greedy choice with exact costs: the bound of every estimate."""

    def __init__(self, stream: SimulatedStream) -> None:
        self._stream = stream
        self._free = np.zeros(stream.instances)

    def submit(self, row: int, columns: Columns, now: float) -> Submission:  # noqa: ARG002
        instance = int(np.maximum(self._free, now).argmin())
        self._free[instance] = max(self._free[instance], now) + self._stream.seconds(row, instance)
        return Submission(instance)

    def receive(self, message: Message) -> None: ...


class PosgScheduler:
    """The machine of Figure 3 with its estimates.

    `completion` is C hat by instance; `frequencies` and `seconds` are the cells that estimate a row on each instance.
    """

    def __init__(self, instances: int, reading: Reading, shape: SketchShape) -> None:
        self.state = SchedulerState.ROUND_ROBIN
        self.completion: Floats = np.zeros(instances)
        self.frequencies = np.zeros((instances, shape.rows, shape.columns), np.int64)
        self.seconds = np.zeros(self.frequencies.shape)
        self.rows_since_sync = 0  # while in state `run`
        self.story: list[tuple[int, SchedulerState]] = []  # (row, new state)
        self.row = 0  # the last one that was submitted
        self.messages = 0
        self._reading = reading
        self._sketches: dict[int, ExecutionSketch] = {}
        self._epoch = self._requests = 0
        self._replies: dict[int, float] = {}

    def submit(self, row: int, columns: Columns, now: float) -> Submission:
        self.begin_row(row)
        if self.state is SchedulerState.ROUND_ROBIN:
            return Submission(row % len(self.completion))
        if self.state is SchedulerState.SEND_ALL:
            return self._send_request(columns, now)
        ends = np.maximum(self.completion, now) if self._reading.skips_idle else self.completion
        instance = int(ends.argmin())
        self._add(instance, columns, now)
        self.rows_since_sync += self.state is SchedulerState.RUN
        return Submission(instance)

    def begin_row(self, row: int) -> None:
        """Note the number of the next row, and begin to synchronise if that is due."""
        self.row = row
        if self.state is SchedulerState.RUN and self.rows_since_sync == self._reading.sync_rows:
            self._handle(SchedulerEvent.SYNC_DUE)

    def receive(self, message: Message) -> None:
        self.messages += 1
        if isinstance(message, SketchReport):
            self._receive_sketch(message)
        else:
            self._receive_reply(message)

    def _receive_sketch(self, report: SketchReport) -> None:
        missing = {*range(len(self.completion))} - {*self._sketches, report.instance}
        event = SchedulerEvent.SKETCH_RECEIVED
        if self.state is not SchedulerState.ROUND_ROBIN:
            if self._reading.sync_rows is not None:
                event = SchedulerEvent.SKETCH_REFRESHED
        elif not missing:
            event = SchedulerEvent.LAST_SKETCH_RECEIVED
        self._sketches[report.instance] = report.sketch  # only a sketch itself is lost if the event is refused
        self._handle(event)

    def _receive_reply(self, reply: SyncReply) -> None:
        is_stale = reply.epoch != self._epoch if self._reading.numbers_epochs else self.state is SchedulerState.RUN
        if is_stale:
            self._handle(SchedulerEvent.STALE_REPLY_RECEIVED)
            return
        self._replies[reply.instance] = reply.delta
        is_last = self.state is SchedulerState.WAIT_ALL and len(self._replies) == len(self.completion)
        self._handle(SchedulerEvent.LAST_REPLY_RECEIVED if is_last else SchedulerEvent.REPLY_RECEIVED)

    def _send_request(self, columns: Columns, now: float) -> Submission:
        instance = self._requests
        self._requests += 1
        self._add(instance, columns, now)
        request = SyncRequest(self._epoch, float(self.completion[instance]))
        is_last = self._requests == len(self.completion)
        self._handle(SchedulerEvent.LAST_REQUEST_SENT if is_last else SchedulerEvent.REQUEST_SENT)
        return Submission(instance, request)

    def _add(self, instance: int, columns: Columns, now: float) -> None:
        """Add the estimate of a row: the mean of the cell with the fewest rows (Listing III.2)."""
        fewest = int(self.frequencies[instance, np.arange(len(columns)), columns].argmin())
        if self._reading.skips_idle:
            self.completion[instance] = max(self.completion[instance], now)
        self.completion[instance] += self.seconds[instance, fewest, columns[fewest]]

    def _handle(self, event: SchedulerEvent) -> None:
        before = self.state
        self.state, commands = next_state(SCHEDULER_TABLE, before, event)
        if self.state is not before:
            self.story.append((self.row, self.state))
        for command in commands:
            if command is SchedulerCommand.KEEP_SKETCH:
                self._update_cells()
            elif command is SchedulerCommand.START_EPOCH:
                self._epoch += 1
                self._requests = 0
                self._replies = {}
            elif command is SchedulerCommand.CORRECT_ESTIMATES:
                self.rows_since_sync = 0
                for instance, delta in sorted(self._replies.items()):
                    self.completion[instance] += delta

    def _update_cells(self) -> None:
        if len(self._sketches) < len(self.completion):
            return
        unseen = None if self._reading.unseen_as_mean else 0.0
        sketches = [self._sketches[instance] for instance in range(len(self.completion))]
        if self._reading.pooled:
            cells = CostEstimates.from_sketch(pool(sketches), unseen)
            self.frequencies[:], self.seconds[:] = cells.frequencies, cells.seconds
            return
        for instance, sketch in enumerate(sketches):
            cells = CostEstimates.from_sketch(sketch, unseen)
            self.frequencies[instance], self.seconds[instance] = cells.frequencies, cells.seconds
