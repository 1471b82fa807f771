"""The sizes of the experiments: full, or quick for tests."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ExperimentScale:
    """The sizes of all experiments; defaults are those of paper 004, V-A, except for the number of streams (100)."""

    streams: int = 30  # with seeds of their own
    rows: int = 32_768
    items: int = 4_096
    skews: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # 0 is uniform
    provisioning: tuple[float, ...] = (0.95, 0.98, 1.0, 1.02, 1.05, 1.07, 1.09, 1.12, 1.15)
    max_milliseconds: tuple[int, ...] = (16, 32, 64, 128, 256, 512)
    cost_values: tuple[int, ...] = (2, 4, 16, 64, 256, 1_024)
    instance_counts: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10)
    epsilons: tuple[float, ...] = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
    series_rows: int = 150_000
    series_points: int = 75
    tweets: int = 500_000
    entities: int = 35_000
    tweet_streams: int = 2
    batch_rows: int = 100_000
    sender_counts: tuple[int, ...] = (1, 4, 16, 64)
    batch_nodes: int = 16
    batch_streams: int = 5


FULL = ExperimentScale()
QUICK = ExperimentScale(
    streams=2,
    rows=12_288,
    skews=(0.0, 1.0),
    provisioning=(1.0, 1.07),
    max_milliseconds=(16, 64),
    cost_values=(2, 64),
    instance_counts=(1, 3),
    epsilons=(1.0, 0.05),
    series_rows=16_000,
    series_points=8,
    tweets=8_000,
    entities=1_000,
    tweet_streams=1,
    batch_rows=4_000,
    batch_streams=1,
    sender_counts=(1, 4),
)
