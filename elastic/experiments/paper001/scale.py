"""The sizes of the experiments: full, or quick for tests."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ExperimentScale:
    """The sizes of all experiments. Defaults are those of paper 001, as far as its data sets can be generated.

    Its Wikipedia and Twitter streams are replaced by Zipf streams with the same share of the heaviest key.
    """

    messages: int = 10_000_000
    zipf_keys: int = 1_000_000
    drift_messages: int = 690_000  # those of the cashtags
    drift_keys: int = 2_900
    drift_periods: int = 10
    graph_messages: int = 5_000_000
    graph_vertices: int = 400_000
    samples: int = 200  # of the imbalance, and batches of a stream
    runs: int = 3  # with hash functions of their own
    worker_counts: tuple[int, ...] = (5, 10, 50, 100)
    source_counts: tuple[int, ...] = (5, 10, 15, 20)
    time_worker_counts: tuple[int, ...] = (10, 50)
    time_sources: int = 5
    storm_workers: int = 9
    delays_ms: tuple[float, ...] = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    periods: tuple[int, ...] = (50_000, 150_000, 300_000, 1_500_000, 3_000_000)  # messages; 10 s to 10 min at 5,000/s
    speed_seconds: float = 0.5


FULL = ExperimentScale()
QUICK = ExperimentScale(
    messages=20_000,
    zipf_keys=2_000,
    drift_messages=10_000,
    drift_keys=300,
    drift_periods=3,
    graph_messages=10_000,
    graph_vertices=1_000,
    samples=10,
    runs=1,
    worker_counts=(5, 50),
    source_counts=(5,),
    time_worker_counts=(10,),
    delays_ms=(0.1, 1.0),
    periods=(2_000, 10_000),
    speed_seconds=0.0,
)
