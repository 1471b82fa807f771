"""Simulates sources that send a stream to workers: imbalance over time, and copies of keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.experiments.paper001.streams import Keys, Stream
from elastic.routing.splitting import PARTITIONERS, Partitioner, Targets

Loads = npt.NDArray[np.int64]

_SHORT_NAMES = {
    "hash": "H",
    "shuffle": "SG",
    "potc": "PoTC",
    "on-greedy": "On-Greedy",
    "off-greedy": "Off-Greedy",
    "pair-split": "pair split",
    "d-choices": "D-Choices",
    "w-choices": "W-Choices",
}


@dataclass(frozen=True)
class Technique:
    """How sources choose: the partitioner, and what they know.

    A single source stands for any number of sources that share one global estimate of loads. Several have one each,
    of what they sent themselves; with `probes` it is set to the actual loads after every sample. With `combines` a
    source sends a key once per batch, because it merges its rows first.
    """

    partitioner: str
    sources: int = 1
    probes: bool = False
    combines: bool = False

    @property
    def label(self) -> str:
        """As in the figures of the paper: H, G, L5, L5P."""
        if self.partitioner == "pkg":
            name = "G" if self.sources == 1 else f"L{self.sources}{'P' if self.probes else ''}"
        else:
            name = _SHORT_NAMES[self.partitioner] + (f", {self.sources} sources" if self.sources > 1 else "")
        return f"{name} + combine" if self.combines else name


@dataclass(frozen=True, eq=False)
class Run:
    """The results of a simulation.

    `imbalances[i]` is the largest load less the mean, in rows, after `times[i]` messages.
    """

    messages: int
    times: npt.NDArray[np.int64]
    imbalances: npt.NDArray[np.float64]
    loads: Loads
    chosen: npt.NDArray[np.int16] | None = None  # the worker of each message, if it was to be kept

    @property
    def choices(self) -> npt.NDArray[np.int16]:
        """The worker of each message."""
        if self.chosen is None:
            raise InvalidJob("the choices of this run were not kept. Simulate with keep_choices=True.")
        return self.chosen

    @property
    def mean_share(self) -> float:
        """The imbalance, averaged over time, as a share of all messages."""
        return float(self.imbalances.mean() / self.messages)

    @property
    def final_share(self) -> float:
        """The imbalance at the end, as a share of all messages."""
        return float(self.imbalances[-1] / self.messages)

    @property
    def largest_share(self) -> float:
        """The load of the busiest worker, as a share of all messages."""
        return float(self.loads.max() / self.messages)


def floor_share(heaviest_share: float, workers: int) -> float:
    """Return the imbalance that no two choices avoid, at the end: p1 / 2 - 1 / W, or 0; half of it on average."""
    return max(0.0, heaviest_share / 2 - 1 / workers)


def simulate(
    stream: Stream,
    technique: Technique,
    workers: int,
    *,
    seed: int = 0,
    samples: int = 200,
    source_of: npt.NDArray[np.integer] | None = None,
    keep_choices: bool = False,
) -> Run:
    """Send a stream to workers. Without `source_of` sources get messages in turn; loads are sampled at equal intervals.

    A batch of a source is what it gets between two samples. The worker of each message is kept if asked for, which
    needs messages that are not combined.
    """
    targets = Targets.one_per_worker(workers, seed)
    create = PARTITIONERS[technique.partitioner]
    partitioners = [create(targets, stream.frequencies) for _ in range(technique.sources)]
    times = np.unique(np.linspace(0, stream.messages, samples + 1).astype(np.int64))
    loads, imbalances = np.zeros(workers, np.int64), []
    chosen = np.zeros(stream.messages, np.int16) if keep_choices else None
    for start, stop in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
        for partitioner, rows in zip(partitioners, _divide(start, stop, technique.sources, source_of), strict=True):
            keys: Keys = np.unique(stream.keys[rows]) if technique.combines else stream.keys[rows]
            sent = partitioner.partition(stream.hashes[keys])
            loads += np.bincount(sent, minlength=workers)
            if chosen is not None:
                chosen[rows] = sent
        imbalances.append(loads.max() - loads.mean())
        if technique.probes:
            _probe(partitioners, loads)
    return Run(stream.messages, times[1:], np.array(imbalances), loads, chosen)


def count_copies(keys: Keys, chosen: npt.NDArray[np.int16], workers: int) -> Loads:
    """Return how many keys each worker has messages of: its counters, in a word count."""
    has_key = np.zeros((int(keys.max()) + 1, workers), np.bool_)
    has_key[keys, chosen] = True
    copies: Loads = np.count_nonzero(has_key, axis=0)
    return copies


def _divide(
    start: int, stop: int, sources: int, source_of: npt.NDArray[np.integer] | None
) -> Iterator[slice | npt.NDArray[np.intp]]:
    """Yield the messages of each source."""
    for source in range(sources):
        if source_of is None:
            yield slice(start + (source - start) % sources, stop, sources)
        else:
            yield start + np.flatnonzero(source_of[start:stop] == source)


def _probe(partitioners: Sequence[Partitioner], loads: Loads) -> None:
    for partitioner in partitioners:
        partitioner.loads[:] = loads
