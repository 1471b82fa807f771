"""An operator instance: measures the rows that it executes, reports sketches, answers requests."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from elastic.routing.shuffle.machines import (
    INSTANCE_TABLE,
    InstanceCommand,
    InstanceEvent,
    InstanceState,
    next_state,
)
from elastic.routing.shuffle.simulation.readings import Reading
from elastic.routing.shuffle.sketch import Columns, ExecutionSketch, relative_change


class SyncRequest(NamedTuple):
    """Rides on a row: what the scheduler believes of the instance, with that row."""

    epoch: int
    estimate: float


class SyncReply(NamedTuple):
    """The correction that the scheduler adds to its estimate; paper: Delta."""

    instance: int
    epoch: int
    delta: float


class SketchReport(NamedTuple):
    instance: int
    sketch: ExecutionSketch


Message = SyncReply | SketchReport


@dataclass(eq=False)
class OperatorInstance:
    """The machine of Figure 2.

    `execute` does all that a row asks for. The simulator, whose loop counts rows and adds them to the sketch for all
    instances at once, calls the steps of it instead.
    """

    number: int
    reading: Reading
    sketch: ExecutionSketch
    state: InstanceState = InstanceState.START

    def __post_init__(self) -> None:
        self._executed = 0
        self._worked = 0.0  # total seconds; paper: C_op
        self._snapshot = self.sketch.mean_seconds()
        self._outbox: list[Message] = []

    def execute(self, columns: Columns, seconds: float, finished: float, request: SyncRequest | None) -> list[Message]:
        """Account for a row, given by its columns in the sketch, and return the messages to the scheduler."""
        self.measure(columns, seconds)
        self._executed += 1
        self._worked += seconds
        if request is not None:
            self.answer(request, self._worked, finished)
        if self._executed == self.reading.window:
            self._executed = 0
            self.end_window()
        return self.take_messages()

    def measure(self, columns: Columns, seconds: float) -> None:
        """Add a row to the sketch."""
        rows = np.arange(len(columns))
        self.sketch.frequencies[rows, columns] += 1
        self.sketch.seconds[rows, columns] += seconds

    def answer(self, request: SyncRequest, worked: float, finished: float) -> None:
        """Compare the estimate of the scheduler with what is true after the row that carried it."""
        self._handle(InstanceEvent.SYNC_REQUESTED)
        truth = finished if self.reading.wall_clock else worked
        self._outbox.append(SyncReply(self.number, request.epoch, truth - request.estimate))

    def end_window(self) -> None:
        """Look whether the sketch is stable, and report it if so."""
        mu = self.reading.mu
        if mu is None:
            self._handle(InstanceEvent.STABLE_WINDOW_ENDED)
        elif self.state is InstanceState.START:
            self._handle(InstanceEvent.WINDOW_ENDED)
        elif relative_change(self._snapshot, self.sketch, by_frequency=self.reading.by_frequency) <= mu:
            self._handle(InstanceEvent.STABLE_WINDOW_ENDED)
        else:
            self._handle(InstanceEvent.UNSTABLE_WINDOW_ENDED)

    def take_messages(self) -> list[Message]:
        """Return the messages since the last call, in order."""
        messages, self._outbox = self._outbox, []
        return messages

    def _handle(self, event: InstanceEvent) -> None:
        self.state, commands = next_state(INSTANCE_TABLE, self.state, event)
        for command in commands:
            if command is InstanceCommand.TAKE_SNAPSHOT:
                self._snapshot = self.sketch.mean_seconds()
            elif command is InstanceCommand.SEND_SKETCH:
                self._outbox.append(SketchReport(self.number, self.sketch.copy()))
            elif command is InstanceCommand.CLEAR_SKETCH:
                self.sketch.clear()
