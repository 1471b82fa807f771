"""The sizes of the experiments: full, or quick for tests."""

from dataclasses import dataclass, field
from typing import NamedTuple

from mdp.approximate.training import DEFAULT_ROUNDS, DEFAULT_SAMPLES, DEFAULT_SEQUENCES


class Training(NamedTuple):
    """Options for training an additive value; see `mdp.approximate.train`."""

    rounds: int = DEFAULT_ROUNDS
    samples: int = DEFAULT_SAMPLES
    sequences: int = DEFAULT_SEQUENCES


@dataclass(frozen=True)
class ExperimentScale:
    """The sizes of all experiments. The defaults are those of paper 003, section 6, where it names any."""

    tasks: int = 64
    low: int = 8
    high: int = 16
    tau: float = 0.2
    loose_tau: float = 0.4
    gamma: float = 0.8
    taus: tuple[float, ...] = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6)
    gammas: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
    sizes: tuple[int, ...] = (64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)
    sequences: int = 40
    quality_sequences: int = 120  # shares of small differences need more of them than means do
    migrations: int = 125
    # Exact values of so many partitions take about half a minute on two cores; quality is worth some minutes.
    most_exact: int = 500_000
    most_exact_for_quality: int = 5_000_000
    reduced_partitions: int = 200_000
    block: int = 25  # consecutive migrations of a recorded sequence whose mean is one observation
    training: Training = field(default_factory=Training)
    timing_seconds: float = 2.0  # of repeated calls a point
    logs: int = 4
    log_days: float = 55.0


FULL = ExperimentScale()
QUICK = ExperimentScale(
    tasks=20,
    low=3,
    high=6,
    taus=(0.2, 0.4),
    gammas=(0.0, 0.8),
    sizes=(64, 256),
    sequences=4,
    quality_sequences=4,
    migrations=20,
    most_exact=100,
    most_exact_for_quality=300,
    reduced_partitions=60,
    block=10,
    training=Training(rounds=1, samples=60, sequences=3),
    timing_seconds=0.05,
    logs=2,
    log_days=12.0,
)
