"""When each node will be done with the rows that senders gave it: the loads that the next batch starts from.

Paper 004 asks operator instances how far they are. Here every batch is asked about anyway: a node reports its step, and
what it has left then are the batches after it. Estimates are corrected by that, so errors do not add up.
"""

from collections.abc import Mapping
from types import MappingProxyType

from elastic.core.ids import Batch
from elastic.core.messages import StepApplied

_NOTHING: Mapping[str, float] = MappingProxyType({})


class Backlogs:
    """The expected end of each node's work, as a time of the driver's clock; only of nodes that were given rows."""

    def __init__(self) -> None:
        self._pending: dict[str, dict[Batch, float]] = {}
        self._ends: Mapping[str, float] = _NOTHING

    @property
    def ends(self) -> Mapping[str, float]:
        """The same object as long as nothing changed."""
        return self._ends

    def batch_logged(self, batch: Batch, seconds: Mapping[str, float], now: float) -> None:
        """Add the expected seconds of a batch that is about to be committed, by node."""
        if not seconds:
            return
        ends = dict(self._ends)
        for node, expected in seconds.items():
            self._pending.setdefault(node, {})[batch] = expected
            ends[node] = max(now, ends.get(node, now)) + expected
        self._ends = ends

    def step_applied(self, report: StepApplied, now: float) -> None:
        """Correct the end of a node's work: it is done with this batch."""
        pending = self._pending.get(report.node)
        if not pending:
            return
        left = {batch: expected for batch, expected in pending.items() if batch > report.position.batch}
        if len(left) < len(pending):
            self._pending[report.node] = left
            self._ends = {**self._ends, report.node: now + sum(left.values())}

    def node_lost(self, node: str) -> None:
        """Forget a node: what it had to do is repeated by other processes, and nobody knows when."""
        if self._pending.pop(node, None) is not None:
            self._ends = {name: end for name, end in self._ends.items() if name != node}
