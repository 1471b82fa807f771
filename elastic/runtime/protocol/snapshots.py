"""The snapshot under way: whose answers are awaited, what came in, and when it may replace the log."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from elastic.runtime.protocol import commands
from elastic.runtime.protocol.commands import Command
from elastic.runtime.protocol.messages import Saved
from storage.state import Units


@dataclass
class _Run:
    lease: str | None = None
    waiting: set[str] = field(default_factory=set)
    answers: dict[str, Saved] = field(default_factory=dict)  # by node
    committing: bool = False


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

    def lease_opened(self, lease: str, nodes: Iterable[str]) -> bool:
        """Whether these nodes should be asked now."""
        if self._run is None or self._run.lease is not None:
            return False
        self._run.lease, self._run.waiting = lease, set(nodes)
        return True

    def saved(self, report: Saved) -> None:
        run = self._run
        if run is not None and run.lease == report.lease and report.node in run.waiting:
            run.waiting.remove(report.node)
            run.answers[report.node] = report

    def lost(self, node: str) -> None:
        """It will not answer, and what it answered is left out.

        The states are as good as ever, but whoever gets its units may begin with older ones, and needs the log after
        those. Committing the newer ones would let it go.
        """
        if self._run is not None and not self._run.committing:
            self._run.waiting.discard(node)
            self._run.answers.pop(node, None)

    @property
    def is_committing(self) -> bool:
        """Whether the log may be shortened any moment: nobody should begin with what the manifest says now."""
        return self._run is not None and self._run.committing

    def finish(self, published: int, units: Units) -> list[Command]:
        """Commit when all nodes have answered and every result that the states include is visible."""
        run = self._run
        if run is None or run.lease is None or run.waiting or run.committing:
            return []
        saved = [ref for answer in run.answers.values() for ref in answer.states]
        if any(ref.batch > published for ref in saved):
            return []
        run.committing = True
        states = tuple(ref for ref in saved if ref.batch > units.through(ref.unit))
        unchanged = {
            unit.slot: min(unit.through, published)
            for answer in run.answers.values()
            for unit in answer.unchanged
            if unit.changed <= self._through(unit.slot) < min(unit.through, published)
        }
        return [commands.CommitStates(run.lease, states, unchanged)]

    def end(self) -> None:
        self._run = None
        self.ended += 1
