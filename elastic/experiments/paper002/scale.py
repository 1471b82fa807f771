"""The sizes of the experiments: full, or quick for tests."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ExperimentScale:
    """The sizes of all experiments; the paper gives skew, key counts and thetas, paper 000 the rest."""

    keys: int = 100_000
    nodes: int = 15
    skew: float = 0.85
    fluctuation: float = 1.0
    theta: float = 0.08
    window: int = 5
    most_entries: int = 3_000
    share: float = 0.1  # of a cheap standby's work; figure `share` has others
    runs: int = 3  # trajectories with seeds of their own
    intervals: int = 8  # plans of a trajectory, after the first one from the hash alone
    thetas: tuple[float, ...] = (0.02, 0.05, 0.08, 0.15, 0.2, 0.3)
    key_counts: tuple[int, ...] = (5_000, 10_000, 100_000, 1_000_000)
    key_skew: float = 0.8  # of figure 9
    large_keys: int = 1_000_000  # from here on one trajectory only
    node_counts: tuple[int, ...] = (5, 10, 20, 30)
    fluctuations: tuple[float, ...] = (0.2, 0.5, 1.0, 1.5, 2.0)
    shares: tuple[float, ...] = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
    covered: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)  # of the keys: those whose service level asks for a standby
    counts: tuple[int, ...] = (1, 2, 4)  # standbys of a key
    skew_node_counts: tuple[int, ...] = (5, 10, 20, 40)
    skew_key_counts: tuple[int, ...] = (5_000, 10_000, 100_000, 1_000_000)
    skew_intervals: int = 20


FULL = ExperimentScale()
QUICK = ExperimentScale(
    keys=500,
    nodes=5,
    most_entries=200,
    runs=1,
    intervals=2,
    thetas=(0.08, 0.2),
    key_counts=(500, 1_000),
    node_counts=(3, 5),
    fluctuations=(0.5, 1.0),
    shares=(0.0, 0.9),
    covered=(0.5, 1.0),
    counts=(1, 2),
    skew_node_counts=(3, 5),
    skew_key_counts=(500, 1_000),
    skew_intervals=2,
)
