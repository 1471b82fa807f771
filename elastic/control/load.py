"""How busy nodes are and how much waits for them, over a stretch of time."""

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
    """What was measured over `seconds`.

    Nodes that are not up at the end, or were not seen twice, are not in `utilisation`; that of the others is the share
    of the time that they were seen in which they worked.
    """

    seconds: float
    utilisation: Mapping[str, float]  # by node, 0 to 1
    waiting_steps: Mapping[str, int]  # by node, at the end: committed steps that it has not taken
    batches_ahead: float  # committed and not applied, on average
    batches_allowed: int  # with so many ahead the source has to wait
    queue_growth: float  # batches ahead a second

    @property
    def mean_utilisation(self) -> float:
        return fmean(self.utilisation.values()) if self.utilisation else 0.0

    @classmethod
    def over(cls, samples: Sequence[Sample]) -> Self:
        """From samples in order of time; nothing is known of no samples."""
        if not samples:
            return cls(0.0, {}, {}, 0.0, 1, 0.0)
        newest = samples[-1].vitals
        return cls(
            seconds=samples[-1].at - samples[0].at,
            utilisation={node: share for node in newest.nodes if (share := _utilisation(samples, node)) is not None},
            waiting_steps={node: counters.waiting_steps for node, counters in newest.nodes.items()},
            batches_ahead=fmean(sample.vitals.batches_ahead for sample in samples),
            batches_allowed=newest.batches_allowed,
            queue_growth=_growth(samples),
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def _utilisation(samples: Sequence[Sample], node: str) -> float | None:
    """Over the latest life of the node: another incarnation counts from zero."""
    incarnation = samples[-1].vitals.nodes[node].incarnation
    seen = [
        (sample.at, counters.busy_seconds)
        for sample in samples
        if (counters := sample.vitals.nodes.get(node)) is not None and counters.incarnation == incarnation
    ]
    (began, before), (ended, after) = seen[0], seen[-1]
    if ended <= began:
        return None
    # A pulse is up to one heartbeat old, so that a short stretch can seem to hold more work than time.
    return min(1.0, max(0.0, after - before) / (ended - began))


def _growth(samples: Sequence[Sample]) -> float:
    """The slope of the line through all samples: one batch that was early or late hardly turns it."""
    if samples[-1].at <= samples[0].at:
        return 0.0
    return linear_regression([s.at for s in samples], [s.vitals.batches_ahead for s in samples]).slope
