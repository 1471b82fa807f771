"""Deaths of nodes by the step that they were taking: finds a step that kills process after process."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from elastic.core.ids import Batch, UnitId
from elastic.core.messages import StepEnded, StepStarted
from elastic.core.steps import Position

LIMIT = 3  # deaths at one step: two may be chance, and each further one delays the job


class Death(NamedTuple):
    """A node died while these units took the step at this position, one of `deaths` so far."""

    position: Position
    units: tuple[UnitId, ...]
    deaths: int


@dataclass
class _Record:
    """The deaths of one node, across its incarnations."""

    replaced: bool = False  # whether an incarnation was lost and the next has not caught up
    taking: StepStarted | None = None
    deaths: dict[Position, int] = field(default_factory=lambda: defaultdict(int))


class Crashes:
    """Counts deaths at steps, node by node.

    Only a careful node reports its steps (see `InstallUnits`), so the first death at a step has no position and is not
    counted. Deaths add up until the node has caught up: a node that is killed now and then is never suspected, because
    it catches up in between. A node that is idle, loads or starts takes no step.
    """

    def __init__(self) -> None:
        self._records: dict[str, _Record] = defaultdict(_Record)
        self._isolated: dict[UnitId, set[Position]] = defaultdict(set)

    def started(self, report: StepStarted) -> None:
        self._records[report.node].taking = report

    def ended(self, report: StepEnded) -> None:
        record = self._records[report.node]
        taking = record.taking
        if taking is not None and (taking.position, taking.units) == (report.position, report.units):
            record.taking = None

    def caught_up(self, node: str) -> None:
        self._records.pop(node, None)

    def lost(self, node: str) -> Death | None:
        """Return what the node died of; None if it was not known to take a step."""
        record = self._records[node]
        record.replaced = True
        taking, record.taking = record.taking, None
        if taking is None:
            return None
        record.deaths[taking.position] += 1
        return Death(taking.position, taking.units, record.deaths[taking.position])

    def take_over(self, node: str) -> None:
        """Note that a node takes over units of a lost one, and with them the step that it may have died of."""
        self._records[node].replaced = True

    def is_careful(self, node: str) -> bool:
        """Whether the node is to report its steps while it replaces a lost one."""
        return node in self._records and self._records[node].replaced

    def suspects(self, node: str) -> tuple[Position, ...]:
        """Return the positions at which the node has died."""
        return tuple(sorted(self._records[node].deaths)) if node in self._records else ()

    def isolate(self, death: Death) -> bool:
        """Have these units take the step in a child process from now on; False if they already do."""
        new = [unit for unit in death.units if death.position not in self._isolated[unit]]
        for unit in new:
            self._isolated[unit].add(death.position)
        for record in self._records.values():
            record.deaths.pop(death.position, None)
        return bool(new)

    def isolated(self, unit: UnitId) -> tuple[Position, ...]:
        return tuple(sorted(self._isolated.get(unit, ())))

    def drop_steps(self, through: Batch) -> None:
        """Drop the batches that every unit's committed state includes: they are not taken again."""
        for positions in self._isolated.values():
            positions.difference_update([position for position in positions if position.batch <= through])
        for record in self._records.values():
            for position in [position for position in record.deaths if position.batch <= through]:
                del record.deaths[position]

    def counts(self) -> dict[str, dict[Position, int]]:
        """Return deaths by node and position, of nodes that have not caught up."""
        return {node: dict(record.deaths) for node, record in self._records.items() if record.deaths}
