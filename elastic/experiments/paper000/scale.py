"""The sizes of the experiments: full, or quick for tests."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ExperimentScale:
    """The sizes of all experiments. Defaults are those of paper 000, Table II, except for the number of keys.

    The paper's 10^6 keys are used where the number of keys matters: in figures 7, 8, 10 and 11. (With fewer keys, the
    heaviest one alone exceeds the cap of 40 nodes.) Elsewhere 10^5 keys leave time for more trajectories.
    """

    keys: int = 100_000
    nodes: int = 15
    skew: float = 0.85
    fluctuation: float = 1.0
    theta: float = 0.08
    window: int = 5
    most_entries: int = 3_000
    windows: tuple[int, ...] = (1, 5)
    runs: int = 3  # trajectories with seeds of their own
    intervals: int = 8  # plans of a trajectory, after the first one from the hash alone
    skew_intervals: int = 50
    node_counts: tuple[int, ...] = (5, 10, 20, 30, 40)
    skew_node_counts: tuple[int, ...] = (5, 10, 20, 40)
    thetas: tuple[float, ...] = (0.02, 0.05, 0.08, 0.15, 0.2, 0.3)
    key_counts: tuple[int, ...] = (5_000, 10_000, 100_000, 1_000_000)
    large_runs: int = 1  # trajectories with the most keys, and plans of each
    large_intervals: int = 4
    compact_keys: int = 1_000_000
    degrees: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 7, 8)
    compact_intervals: int = 3
    fluctuations: tuple[float, ...] = (0.2, 0.5, 1.0, 1.5, 2.0)
    fluctuation_keys: int = 20_000  # brute force plans once for every entry of the table
    fluctuation_entries: int = 400  # as many as make Mixed move entries back
    table_sizes: tuple[int, ...] = tuple(2**power for power in range(3, 14))
    table_thetas: tuple[float, ...] = (0.02, 0.08, 0.2)
    growth_keys: int = 10_000
    growth_adjustments: int = 200
    growth_thetas: tuple[float, ...] = (0.01, 0.02, 0.08, 0.3)
    all_windows: tuple[int, ...] = (1, 5, 10, 15, 20)
    betas: tuple[float, ...] = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0)


FULL = ExperimentScale()
QUICK = ExperimentScale(
    keys=2_000,
    nodes=5,
    runs=1,
    intervals=2,
    skew_intervals=3,
    node_counts=(3, 5),
    skew_node_counts=(3, 5),
    thetas=(0.08, 0.2),
    key_counts=(1_000, 2_000),
    large_intervals=2,
    compact_keys=5_000,
    degrees=(0, 3, 6),
    compact_intervals=1,
    fluctuations=(0.5, 1.0),
    fluctuation_keys=1_000,
    fluctuation_entries=10,
    table_sizes=(4, 64),
    table_thetas=(0.08, 0.2),
    growth_keys=500,
    growth_adjustments=10,
    growth_thetas=(0.02, 0.3),
    all_windows=(1, 5),
    betas=(1.0, 2.0),
)
