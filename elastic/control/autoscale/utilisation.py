"""The default policy: enough nodes that each is busy for the target share of the time."""

from dataclasses import dataclass
from math import ceil

from elastic.control.autoscale.policy import Decision, Observation
from elastic.control.load import Load
from elastic.errors import InvalidAutoscaling
from elastic.numbers import as_number

_FULL = 0.75  # of the pending-batch limit; a stream that keeps up stays below it
_HORIZON_SECONDS = 10.0  # about the time of a scale-out: react to a queue that will be full by then
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Utilisation:
    """Keeps the node count while utilisation is between two thresholds, else scales to the target utilisation.

    With n nodes of mean utilisation u, the work L = n u would keep

        n' = ceil(L / aim)

    nodes busy for at most `aim` of the time. The policy scales to n' when u > `high` or u < `low`. n' depends on the
    work and not on n, so one decision answers a constant load; a saturated job shows less work than arrives, and needs
    several.

    A queue that is full, or will be soon, adds one node even between the thresholds, provided that u stays above `low`
    with it; otherwise nodes are not the bottleneck (a heavy task, the store), and more would not help. While there is
    such a queue no node is removed.
    """

    low: float = 0.3  # below it nodes are removed
    aim: float = 0.6  # at a tau of 0.2 the busiest node is then at 0.72, below `high`
    high: float = 0.8  # above it nodes are added; the rest is headroom for peaks and for catching up

    def __post_init__(self) -> None:
        for name in ("low", "aim", "high"):
            number = as_number(getattr(self, name))
            if number is None or not 0 < number <= 1:
                raise InvalidAutoscaling(name, getattr(self, name), "it must be a fraction above 0 and at most 1")
        if not self.low < self.aim < self.high:
            why = f"it must hold that low < aim < high, got {self.low:g}, {self.aim:g}, {self.high:g}"
            raise InvalidAutoscaling("aim", self.aim, why)

    def decide(self, observation: Observation) -> Decision:
        nodes, load = observation.nodes, observation.load
        busy = load.mean_utilisation
        work = busy * nodes
        needed = max(1, ceil(work / self.aim - _ROUNDING))
        queue = _describe_queue(load)
        if busy > self.high:
            return Decision(needed, f"utilisation {busy:.0%} is above the high threshold {self.high:.0%}")
        if queue and work / (nodes + 1) >= self.low:
            return Decision(nodes + 1, f"{queue}, at utilisation {busy:.0%}")
        if queue:
            return Decision(nodes, f"{queue}, but utilisation is only {busy:.0%}: more nodes would not help")
        if busy < self.low and needed < nodes:
            return Decision(needed, f"utilisation {busy:.0%} is below the low threshold {self.low:.0%}")
        return Decision(nodes, f"utilisation {busy:.0%} needs no change")


def _describe_queue(load: Load) -> str:
    """Return what is wrong with the queue of pending batches, or an empty text."""
    limit = _FULL * load.max_pending_batches
    if load.pending_batches >= limit:
        return f"{load.pending_batches:.1f} of {load.max_pending_batches} batches are pending"
    if load.pending_batches + load.queue_growth * _HORIZON_SECONDS >= limit:
        return f"{load.pending_batches:.1f} batches are pending, {load.queue_growth:.2f} more every second"
    return ""
