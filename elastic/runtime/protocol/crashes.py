"""Deaths of nodes by the step that they were taking: a step that kills process after process is found here."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from elastic.runtime.protocol.messages import StepEnded, StepStarted
from elastic.runtime.protocol.steps import Position

LIMIT = 3  # deaths at one step: two may be chance, and every further one keeps the job waiting


class Death(NamedTuple):
    """A node died while these units took the step at this position, one of `deaths` so far."""

    position: Position
    slots: tuple[int, ...]
    deaths: int


@dataclass
class _Record:
    """What is known of one node, whatever its incarnation."""

    replaced: bool = False  # whether an incarnation was lost and the next has not caught up
    taking: StepStarted | None = None
    deaths: dict[Position, int] = field(default_factory=lambda: defaultdict(int))


class Crashes:
    """Counts deaths at steps, node by node.

    Only a careful node reports its steps (see `Adopt`), so the first death at a step has no position and does not
    count. Deaths count together until the node has caught up: a node that is killed now and then, wherever it is, is
    never suspected, because it catches up in between. A node that is idle, loads or starts takes no step.
    """

    def __init__(self) -> None:
        self._records: dict[str, _Record] = defaultdict(_Record)
        self._isolated: dict[int, set[Position]] = defaultdict(set)

    def started(self, report: StepStarted) -> None:
        self._records[report.node].taking = report

    def ended(self, report: StepEnded) -> None:
        record = self._records[report.node]
        taking = record.taking
        if taking is not None and (taking.position, taking.slots) == (report.position, report.slots):
            record.taking = None

    def caught_up(self, node: str) -> None:
        self._records.pop(node, None)

    def lost(self, node: str) -> Death | None:
        """What the node died of; None if it was not at a step, as far as is known."""
        record = self._records[node]
        record.replaced = True
        taking, record.taking = record.taking, None
        if taking is None:
            return None
        record.deaths[taking.position] += 1
        return Death(taking.position, taking.slots, record.deaths[taking.position])

    def is_careful(self, node: str) -> bool:
        """Whether the next incarnation of the node is to report its steps."""
        return node in self._records and self._records[node].replaced

    def suspects(self, node: str) -> tuple[Position, ...]:
        """Positions at which the node has died."""
        return tuple(sorted(self._records[node].deaths)) if node in self._records else ()

    def isolate(self, death: Death) -> bool:
        """Have these units take the step in a child process from now on; False if they did already."""
        new = [slot for slot in death.slots if death.position not in self._isolated[slot]]
        for slot in new:
            self._isolated[slot].add(death.position)
        for record in self._records.values():
            record.deaths.pop(death.position, None)
        return bool(new)

    def isolated(self, slot: int) -> tuple[Position, ...]:
        return tuple(sorted(self._isolated.get(slot, ())))

    def forget_steps(self, through: int) -> None:
        """Every unit's saved state includes these batches: nobody takes them again."""
        for positions in self._isolated.values():
            positions.difference_update([position for position in positions if position.batch <= through])
        for record in self._records.values():
            for position in [position for position in record.deaths if position.batch <= through]:
                del record.deaths[position]

    def counts(self) -> dict[str, dict[Position, int]]:
        """Deaths by node and position, of nodes that have not caught up."""
        return {node: dict(record.deaths) for node, record in self._records.items() if record.deaths}
