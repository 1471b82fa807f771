"""The snapshot under way: whose turn it is, what came in, and when it may replace the log."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from elastic.runtime.protocol import commands
from elastic.runtime.protocol.commands import Command
from elastic.runtime.protocol.messages import Saved, Unchanged
from storage.state import StateRef, Units

_TURNS = 8  # of an eighth of the nodes each: all at once would keep batches waiting for processors and disks


@dataclass
class _Run:
    lease: str | None = None
    to_ask: list[str] = field(default_factory=list)
    at_once: int = 1
    waiting: set[str] = field(default_factory=set)  # asked, and not answered
    states: dict[int, StateRef] = field(default_factory=dict)  # by slot
    unchanged: dict[int, Unchanged] = field(default_factory=dict)
    told_by: dict[int, str] = field(default_factory=dict)  # by slot: the node that either is from
    committing: bool = False

    def forget(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self.states.pop(slot, None)
            self.unchanged.pop(slot, None)
            self.told_by.pop(slot, None)


class Snapshots:
    """At most one at a time. `through` tells the batch as of which the committed state of a slot is right."""

    def __init__(self, through: Callable[[int], int]) -> None:
        self.ended = 0
        self._through = through
        self._run: _Run | None = None

    def begin(self) -> list[Command]:
        if self._run is not None:
            return []
        self._run = _Run()
        return [commands.OpenLease()]

    def lease_opened(self, lease: str, nodes: Sequence[str]) -> None:
        """These nodes are to be asked, one after the other."""
        if self._run is not None and self._run.lease is None:
            self._run.lease, self._run.to_ask = lease, list(nodes)
            self._run.at_once = -(-len(nodes) // _TURNS)

    def next_to_ask(self) -> tuple[str, str] | None:
        """The node whose turn it is now, and the lease for its states; None if there is none, or others are at it."""
        run = self._run
        if run is None or run.lease is None or not run.to_ask or len(run.waiting) >= run.at_once:
            return None
        node = run.to_ask.pop(0)
        run.waiting.add(node)
        return node, run.lease

    def saved(self, report: Saved) -> None:
        """A unit that moved on since may be in two answers: its newer state counts."""
        run = self._run
        if run is None or run.lease != report.lease or report.node not in run.waiting:
            return
        run.waiting.remove(report.node)
        for ref in report.states:
            known = run.states.get(ref.unit.task)
            if known is None or known.batch < ref.batch:
                run.states[ref.unit.task], run.told_by[ref.unit.task] = ref, report.node
        for unit in report.unchanged:
            if unit.slot not in run.states:
                run.unchanged[unit.slot], run.told_by[unit.slot] = unit, report.node

    def lost(self, node: str, slots: Iterable[int]) -> None:
        """It will not answer; what it told, and what others told of the units that it had, is left out.

        The states are as good as ever, but whoever gets the units may begin with older ones, and needs the log after
        those. Committing the newer ones would let it go.
        """
        run = self._run
        if run is None or run.committing:
            return
        run.waiting.discard(node)
        if node in run.to_ask:
            run.to_ask.remove(node)
        run.forget(slots)
        run.forget([slot for slot, teller in run.told_by.items() if teller == node])

    @property
    def is_committing(self) -> bool:
        """Whether the log may be shortened any moment: nobody should begin with what the manifest says now."""
        return self._run is not None and self._run.committing

    def finish(self, published: int, units: Units) -> list[Command]:
        """Commit when all nodes have answered and every result that the states include is visible."""
        run = self._run
        if run is None or run.lease is None or run.to_ask or run.waiting or run.committing:
            return []
        if any(ref.batch > published for ref in run.states.values()):
            return []
        run.committing = True
        states = tuple(ref for ref in run.states.values() if ref.batch > units.through(ref.unit))
        unchanged = {
            slot: min(unit.through, published)
            for slot, unit in run.unchanged.items()
            if slot not in run.states and unit.changed <= self._through(slot) < min(unit.through, published)
        }
        return [commands.CommitStates(run.lease, states, unchanged, published)]

    def end(self) -> None:
        self._run = None
        self.ended += 1
