"""Utilisation of nodes and length of the batch queue over a time window."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, linear_regression
from typing import Any, NamedTuple, Self

from elastic.control.cluster import Vitals


class Sample(NamedTuple):
    """The vitals of a cluster at one moment."""

    at: float
    vitals: Vitals


@dataclass(frozen=True)
class Load:
    """Load measured over a window of `seconds`.

    `utilisation` leaves out nodes that are down at the end of the window or were sampled only once. For the others it
    is busy time divided by the time between their first and last sample.
    """

    seconds: float
    utilisation: Mapping[str, float]  # by node, 0 to 1
    pending_steps: Mapping[str, int]  # by node, at the end: committed steps not applied yet
    pending_batches: float  # batches committed and not applied yet, on average
    max_pending_batches: int  # at this many pending batches the source is throttled
    queue_growth: float  # change of pending batches per second

    @property
    def mean_utilisation(self) -> float:
        return fmean(self.utilisation.values()) if self.utilisation else 0.0

    @classmethod
    def from_samples(cls, samples: Sequence[Sample]) -> Self:
        """Return the load over samples in order of time; without samples, an empty load."""
        if not samples:
            return cls(0.0, {}, {}, 0.0, 1, 0.0)
        newest = samples[-1].vitals
        return cls(
            seconds=samples[-1].at - samples[0].at,
            utilisation={node: share for node in newest.nodes if (share := _utilisation(samples, node)) is not None},
            pending_steps={node: counters.pending_steps for node, counters in newest.nodes.items()},
            pending_batches=fmean(sample.vitals.pending_batches for sample in samples),
            max_pending_batches=newest.max_pending_batches,
            queue_growth=_growth(samples),
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def _utilisation(samples: Sequence[Sample], node: str) -> float | None:
    """Return the utilisation of the node's newest incarnation; each incarnation counts from zero."""
    incarnation = samples[-1].vitals.nodes[node].incarnation
    busy = [
        (sample.at, counters.busy_seconds)
        for sample in samples
        if (counters := sample.vitals.nodes.get(node)) is not None and counters.incarnation == incarnation
    ]
    (began, before), (ended, after) = busy[0], busy[-1]
    if ended <= began:
        return None
    # Counters are up to one heartbeat old, so a short window can seem to hold more work than time.
    return min(1.0, max(0.0, after - before) / (ended - began))


def _growth(samples: Sequence[Sample]) -> float:
    """Return the slope of pending batches over time by linear regression, robust to single early or late batches."""
    if samples[-1].at <= samples[0].at:
        return 0.0
    return linear_regression([s.at for s in samples], [s.vitals.pending_batches for s in samples]).slope
