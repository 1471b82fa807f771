"""What experiments share: streams, and techniques simulated on them."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.experiments.paper001 import streams
from elastic.experiments.paper001.scale import FULL, ExperimentScale
from elastic.experiments.paper001.simulation import Run, Technique, simulate
from elastic.experiments.progress import ExperimentProgress, SilentProgress

TWEETS = "tweets.csv"
LOG_NORMAL = {"LN1": (1.789, 2.366), "LN2": (2.245, 1.133)}  # mu and sigma, as in the paper
ZIPF = {"Zipf-WP": 0.0932, "Zipf-TW": 0.0267}  # share of the heaviest key, as in the Wikipedia and Twitter streams
IN_SHARE, OUT_SHARE = 0.0029, 0.1  # of a graph: the first as in LiveJournal, the second so that sources are uneven
DRIFT, DRIFT_SHARE = "drift", 0.0329  # as in the cashtags


@dataclass(eq=False)
class Lab:
    """The same seed gives the same results, except for times. `data` is a folder with tweets.csv, if there is one."""

    scale: ExperimentScale = FULL
    seed: int = 0
    progress: ExperimentProgress = field(default_factory=SilentProgress)
    data: Path | None = None
    _cache: dict[Hashable, Run] = field(default_factory=dict, init=False, repr=False)
    _streams: dict[str, streams.Stream] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.data is not None and not (self.data / TWEETS).is_file():
            raise InvalidJob(f"there is no {TWEETS} in {self.data}. Name a folder with that file, or leave out --data.")

    @property
    def stream_names(self) -> Sequence[str]:
        """The streams of Tables I and II and Figure 2."""
        return [*LOG_NORMAL, *ZIPF, *(["tweets"] if self.data else [])]

    def stream(self, name: str) -> streams.Stream:
        if name not in self._streams:
            self.progress.status(f"drawing {name}")
            self._streams[name] = self._create(name)
        return self._streams[name]

    def _create(self, name: str) -> streams.Stream:
        scale = self.scale
        if name in LOG_NORMAL:
            return streams.log_normal(name, *LOG_NORMAL[name], scale.messages, self.seed)
        if name in ZIPF:
            return streams.zipf(name, scale.zipf_keys, ZIPF[name], scale.messages, self.seed)
        if self.data is not None and name == "tweets":
            return streams.words(name, self.data / TWEETS)
        return streams.drifting(
            DRIFT, scale.drift_keys, DRIFT_SHARE, scale.drift_messages, scale.drift_periods, self.seed
        )

    def run(self, name: str, technique: Technique, workers: int, number: int = 0, *, keep_choices: bool = False) -> Run:
        """Simulate a technique on a stream, with the hash functions of that number."""
        key = name, technique, workers, number
        if key in self._cache and not keep_choices:
            return self._cache[key]
        stream = self.stream(name)
        self.progress.status(f"{name}: {technique.label}, {workers} workers")
        seed, samples = 1_000 * self.seed + number, self.scale.samples
        found = simulate(stream, technique, workers, seed=seed, samples=samples, keep_choices=keep_choices)
        self._cache[key] = replace(found, chosen=None)
        return found

    def mean_share(self, name: str, technique: Technique, workers: int) -> tuple[float, float]:
        """Return the mean over hash functions of the imbalance, averaged over time and at the end."""
        runs = [self.run(name, technique, workers, number) for number in range(self.scale.runs)]
        return float(np.mean([run.mean_share for run in runs])), float(np.mean([run.final_share for run in runs]))

    @cached_property
    def graph(self) -> tuple[streams.Stream, npt.NDArray[np.int64]]:
        """The target vertex of each edge as a stream, and the source vertices."""
        scale = self.scale
        return streams.edges("graph", scale.graph_vertices, IN_SHARE, OUT_SHARE, scale.graph_messages, self.seed)
