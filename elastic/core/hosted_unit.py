"""One unit of state on a node: its role, its state, and how far it is in the sequence of steps.

A unit is *active* on one node, which reports what it puts out, and may be a *standby* on others. A standby takes the
same steps with the same code, but only steps of published batches, and what it puts out is dropped. So all that a
standby has taken was reported by the active unit, and a standby that is promoted repeats no output and misses none.
"""

from dataclasses import dataclass
from typing import Self

from elastic.core.ids import NO_BATCH, Batch, Epoch, UnitId
from elastic.core.messages import UnitHandle
from elastic.core.steps import Position, end_of
from elastic.operators.calls import UnitState
from storage.state import StateRef


@dataclass
class HostedUnit:
    """One unit of state, after the step at `position`; `state` is None while it is being loaded."""

    id: UnitId
    position: Position
    complete: bool  # whether that step ended its batch
    changed: Batch  # the last batch that may have changed the state
    reported: Position
    epoch: Epoch  # in which it was installed, or released
    saved: StateRef | None  # what it is loaded from
    through: Batch  # the batch that the saved state includes
    is_standby: bool = False
    has_caught_up: bool = False  # a standby that was reported to be up to date
    isolated: tuple[Position, ...] = ()  # steps that a child process has to try
    last_batch: Batch | None = None  # if it is being released: the batch after which it stops
    state: UnitState | None = None
    is_measured: bool = False  # whether `state_bytes` is the size of the state as it is now
    rows: int = 0
    seconds: float = 0.0
    state_bytes: int = 0

    @classmethod
    def to_load(cls, handle: UnitHandle, epoch: Epoch) -> Self:
        """Return the unit of a handle before its state is there."""
        return cls(
            handle.unit,
            end_of(handle.through),
            True,
            Batch(handle.state.batch) if handle.state else NO_BATCH,
            handle.reported,
            epoch,
            handle.state,
            handle.through,
            handle.standby,
            isolated=handle.isolated,
        )

    @property
    def is_active(self) -> bool:
        return not self.is_standby and not self.is_released

    @property
    def is_released(self) -> bool:
        """Whether it has stopped. It is kept in case that its new node does not get it."""
        stopped = self.last_batch is not None and self.complete and self.position.batch >= self.last_batch
        return stopped and self.state is not None

    @property
    def done_batch(self) -> Batch:
        """The newest batch that it has completed."""
        return Batch(self.position.batch - (not self.complete))

    def next_position(self, published: Batch) -> Position | None:
        """Return the position of the step that it takes next; None if it takes no more, or is not ready.

        A standby takes no step of a batch after the one that was `published` last.
        """
        if self.state is None or self.is_released or (self.is_standby and self.done_batch >= published):
            return None
        batch, round_ = self.position
        return Position(Batch(batch + 1), 0) if self.complete else Position(batch, round_ + 1)

    def has_to_load(self, handle: UnitHandle, epoch: Epoch) -> bool:
        """Return whether the unit needs the saved state of the handle to take the role that the handle gives it.

        A released unit that returns in a later epoch does: another node has worked on it. So does a unit whose own
        state is older than the saved one, because the log before that may be gone, and one that is waiting for another
        state, which may never arrive, or loads at the pace of a standby and is active now. A standby that is ahead of
        what was reported would lose output.
        """
        if self.last_batch is not None and not handle.standby:
            return epoch > self.epoch
        if self.state is None:
            is_urgent = self.is_standby and not handle.standby
            return is_urgent or (self.saved, self.through) != (handle.state, handle.through)
        if handle.standby:
            return handle.through > self.done_batch
        return self.is_standby and (handle.through > self.done_batch or handle.reported < self.position)

    def take_role(self, handle: UnitHandle, epoch: Epoch) -> bool:
        """Go on in the role of a handle that needs no loading; return whether a standby became active."""
        if handle.standby and (self.is_standby or self.is_released):
            if not self.is_standby:
                self._reset_counters()
            self.is_standby, self.last_batch, self.epoch, self.isolated = True, None, epoch, handle.isolated
            self.has_caught_up = False
        elif self.is_standby and not handle.standby:
            self.is_standby, self.epoch, self.isolated = False, epoch, handle.isolated
            self.reported = handle.reported
            self._reset_counters()
            return True
        return False

    def _reset_counters(self) -> None:
        """Begin to count rows and seconds: work as a standby is no work of the task that a plan should count."""
        self.rows, self.seconds = 0, 0.0
