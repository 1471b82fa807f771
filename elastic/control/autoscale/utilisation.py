"""The default policy: as many nodes as make each of them busy for about the share that is aimed at."""

from dataclasses import dataclass
from math import ceil

from elastic.control.autoscale.policy import Decision, Observation
from elastic.control.load import Load
from elastic.errors import InvalidAutoscaling
from elastic.numbers import as_number

_FULL = 0.75  # of the batches that may be ahead: where a stream that just keeps up never is
_HORIZON_SECONDS = 10.0  # about what a scale-out takes: a queue that is full by then is too late to wait for
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Utilisation:
    """Leaves a job alone between two marks, and beyond them goes to the one node count that meets the aim.

    With n nodes that are busy for the share u on average, the work L = n u would keep

        n' = ceil(L / aim)

    nodes busy for `aim` at most. It scales to n' when u > `high` or u < `low`. n' depends on the work and not on n, so
    a constant load is answered once; a job that is saturated shows less work than there is, and is answered again.

    A queue that is full, or is going to be, adds one node even between the marks, provided that u stays above `low`
    with it; else the queue has another reason (a heavy task, the store), and nodes would not help. While there is such
    a queue no node leaves.
    """

    low: float = 0.3  # below it nodes leave
    aim: float = 0.6  # with a plan's tau of 0.2 the busiest node is then at 0.72, which is below `high`
    high: float = 0.8  # above it nodes join: what is left is needed for peaks and for catching up

    def __post_init__(self) -> None:
        for name in ("low", "aim", "high"):
            number = as_number(getattr(self, name))
            if number is None or not 0 < number <= 1:
                raise InvalidAutoscaling(name, getattr(self, name), "it is a share of the time, above 0 and at most 1")
        if not self.low < self.aim < self.high:
            why = f"the marks must be in the order low < aim < high, not {self.low:g}, {self.aim:g}, {self.high:g}"
            raise InvalidAutoscaling("aim", self.aim, why)

    def decide(self, observation: Observation) -> Decision:
        nodes, load = observation.nodes, observation.load
        busy = load.mean_utilisation
        work = busy * nodes
        needed = max(1, ceil(work / self.aim - _ROUNDING))
        queue = _queue(load)
        if busy > self.high:
            return Decision(needed, f"nodes are busy {busy:.0%} of the time, above the high mark {self.high:.0%}")
        if queue and work / (nodes + 1) >= self.low:
            return Decision(nodes + 1, f"{queue}, with nodes busy {busy:.0%} of the time")
        if queue:
            return Decision(nodes, f"{queue}, but nodes are busy only {busy:.0%} of the time: more would not help")
        if busy < self.low and needed < nodes:
            return Decision(needed, f"nodes are busy {busy:.0%} of the time, below the low mark {self.low:.0%}")
        return Decision(nodes, f"nodes are busy {busy:.0%} of the time, and {nodes} are the right number for that")


def _queue(load: Load) -> str:
    """What is wrong with the queue, in words; empty if nothing is."""
    most = _FULL * load.batches_allowed
    if load.batches_ahead >= most:
        return f"{load.batches_ahead:.1f} of {load.batches_allowed} batches wait"
    if load.batches_ahead + load.queue_growth * _HORIZON_SECONDS >= most:
        return f"{load.batches_ahead:.1f} batches wait and {load.queue_growth:.2f} more every second"
    return ""
