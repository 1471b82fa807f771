"""The sizes of the experiments on the engine: full, or quick for tests."""

from dataclasses import dataclass

HASH, IDEAL = "hash", "ideal"
TASKS = "tasks"  # whole tasks move, no single keys


@dataclass(frozen=True)
class EngineScale:
    """The sizes of all runs. The cost of a row is so high that the engine's own work, on all cores, is small beside it.

    At full size eight nodes can take 4,000 rows per second at most.
    """

    strategies: tuple[str, ...] = (HASH, "readj", "min-table", "mixed", "knap", IDEAL)
    nodes: int = 8
    tasks: int = 32
    words: int = 10_000
    symbols: int = 1_000
    skew: float = 0.85
    fluctuation: float = 1.0
    slow_fluctuation: float = 0.2  # of words in Figures 14 and 15: in social feeds they change slowly
    burst: float = 0.2  # of trades
    join_window_ms: int = 2_000
    theta: float = 0.08
    cost_microseconds: float = 2_000.0
    rows_per_batch: int = 800
    # Half an interval, in which keys are measured, has 800 rows per node: a node's load is known to about 4 %.
    batches_per_interval: int = 16
    max_pending_batches: int = 2  # few against an interval: rows that are ingested are routed already
    intervals_per_phase: int = 4  # of these a rebalance can improve three: it knows only what came before
    intervals: int = 12  # three phases; the first interval is not measured
    rounds: int = 2  # runs of each strategy, in turn with the others
    fluctuations: tuple[float, ...] = (0.2, 0.5, 1.0, 1.5, 2.0)
    thetas: tuple[float, ...] = (0.02, 0.08, 0.15, 0.3)
    scale_out_after: int = 4  # intervals, in Figure 15
    scale_out_intervals: int = 12
    # Figure 16. A batch takes several rounds, each as long as its busiest node.
    query_strategies: tuple[str, ...] = (TASKS, "mixed", "knap")  # beside hash and Ideal
    query_thetas: tuple[float, ...] = (0.08,)
    query_skew: float = 0.8
    query_customers: int = 1_500
    query_suppliers: int = 1_000
    query_intervals: int = 12
    query_intervals_per_phase: int = 4
    intervals_per_window: int = 3

    @property
    def interval_seconds(self) -> float:
        """The length of an interval if all nodes work all the time."""
        rows = self.rows_per_batch * self.batches_per_interval
        return rows * self.cost_microseconds / 1e6 / self.nodes


ENGINE_FULL = EngineScale()
ENGINE_QUICK = EngineScale(
    strategies=(HASH, "knap", IDEAL),
    nodes=2,
    tasks=8,
    words=100,
    symbols=20,
    cost_microseconds=100.0,
    rows_per_batch=60,
    batches_per_interval=2,
    intervals=2,
    rounds=1,
    fluctuations=(1.0,),
    thetas=(0.1,),
    scale_out_after=1,
    scale_out_intervals=3,
    query_strategies=(TASKS, "knap"),
    query_thetas=(0.1,),
    query_customers=100,
    query_suppliers=50,
    query_intervals=4,
    query_intervals_per_phase=2,
    intervals_per_window=1,
)
