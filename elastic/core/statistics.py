"""Statistics of a node, as its heartbeats carry them; the source of the planner's work and state sizes."""

from typing import NamedTuple

from elastic.core.ids import Task, UnitId
from elastic.core.steps import Position


class UnitStatistics(NamedTuple):
    """Rows and seconds of a unit since its node installed it; `state_bytes` is as of its last measurement."""

    unit: UnitId
    rows: int = 0
    seconds: float = 0.0
    state_bytes: int = 0


class RunningStep(NamedTuple):
    """The step that a node is taking, for `seconds` so far; `usual_seconds` is the longest of its latest steps.

    `units` narrows down to one as soon as the node knows which unit it is at.
    """

    position: Position
    units: tuple[UnitId, ...]
    seconds: float
    usual_seconds: float

    @property
    def tasks(self) -> list[Task]:
        return sorted({Task(unit.task) for unit in self.units})
