"""Runs of the applications on a job in threads of this process, as fast as it takes batches, with one strategy each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from elastic.experiments.engine_job import WrongResults
from elastic.experiments.paper000.engine.scale import ENGINE_FULL, HASH, IDEAL, TASKS, EngineScale
from elastic.experiments.progress import ExperimentProgress, SilentProgress
from examples.frequent_patterns.texts import make_vocabulary
from examples.harness import Application, RunSettings, Summary, run_windows
from examples.harness.balance import choose_measuring_settings, rebalance
from examples.harness.local_source import run_in_threads
from examples.harness.report import format_verdict
from examples.harness.results import Results
from examples.self_join.application import TradeSelfJoin
from examples.skewed_words.application import SkewedWords
from examples.tpch_q5.application import RevenueByNation
from examples.tpch_q5.stream import Purchases
from examples.tpch_q5.tables import Tables
from examples.workloads import KeyStream, Pace, SkewedTexts, Trades, make_symbols
from migration.keys import plan_keys
from migration.keys.workloads import KeyWorkload

if TYPE_CHECKING:
    from elastic.job.job import Job

APPLICATIONS = ("words", "self-join")
_EVERY_MS = 100  # of event time; the stream itself has no pace


def apply(job: "Job", strategy: str, theta: float, stages: Sequence[str] = ()) -> None:
    """Rebalance the keys of a job by a strategy of `migration.keys`, or its tasks, unless something still moves."""
    if strategy == TASKS:
        rebalance(job, "tasks", theta)
    else:
        rebalance(job, "keys", theta, stages, strategy=strategy)


@dataclass(eq=False)
class EngineLab:
    """Runs a strategy on an application; every window of every run is compared with a batch computation.

    `hash` never rebalances. `ideal` has uniform keys of the same volume, so that hashing alone balances them: no
    strategy that keeps the rows of a key together can do better.
    """

    scale: EngineScale = ENGINE_FULL
    seed: int = 0
    progress: ExperimentProgress = field(default_factory=SilentProgress)
    apply: Callable[["Job", str, float, Sequence[str]], None] = apply
    _is_warm: bool = field(default=False, init=False, repr=False)

    def words(self, strategy: str, fluctuation: float) -> Application:
        keys = self._keys(strategy, fluctuation, words=True)
        return SkewedWords(SkewedTexts(keys, self._pace), self._pace, self.scale.cost_microseconds)

    def trades(self, strategy: str, fluctuation: float) -> Application:
        """Return the self-join; what changes are the bursts, beside the fluctuation."""
        burst = 0.0 if strategy == IDEAL else self.scale.burst
        trades = Trades(self._keys(strategy, fluctuation, words=False), self._pace, burst)
        return TradeSelfJoin(trades, self.scale.join_window_ms, self.scale.cost_microseconds)

    def application(self, name: str, strategy: str) -> Application:
        """Return an application of Figures 14 and 15, by its name."""
        make = self.words if name == "words" else self.trades
        return make(strategy, self.scale.slow_fluctuation)

    def query(self, strategy: str) -> RevenueByNation:
        """Return the application of Figure 16."""
        scale = self.scale
        tables = Tables.generate(scale.query_customers, scale.query_suppliers, seed=self.seed)
        pace = replace(self._pace, intervals_per_phase=scale.query_intervals_per_phase)
        skew, change = (0.0, 0.0) if strategy == IDEAL else (scale.query_skew, scale.fluctuation)

        def draw(count: int, seed: int) -> KeyStream:
            return KeyStream(pa.array(np.arange(count)), scale.nodes, scale.tasks, skew, change, seed)

        customers, suppliers = draw(len(tables.customers), self.seed), draw(len(tables.suppliers), self.seed + 1)
        purchases = Purchases(tables, customers, suppliers, pace)
        return RevenueByNation(purchases, scale.intervals_per_window, cost_microseconds=scale.cost_microseconds)

    def run(
        self, application: Application, strategy: str, theta: float, intervals: int, scale_out_after: int | None = None
    ) -> Summary:
        """Run an application, and rebalance after every interval; after one of them a node joins."""
        if not self._is_warm:
            self._warm_up(application)
        self.progress.status(f"{application.name}, {strategy}, theta {theta:g}")
        done = 0

        def end_interval(job: "Job") -> None:
            nonlocal done
            done += 1
            if done == scale_out_after:
                job.scale(add=1).wait()
            if strategy not in (HASH, IDEAL):
                self.apply(job, strategy, theta, application.balanced)

        results = Results(application)
        batches = intervals * self.scale.batches_per_interval
        options = {
            "nodes": self.scale.nodes,
            "tasks": self.scale.tasks,
            "settings": {
                "max_pending_batches": self.scale.max_pending_batches,
                **choose_measuring_settings(self.scale.interval_seconds),
            },
        }
        with run_in_threads(application, results, batches=batches, paced=False, **options) as stream:
            summary = run_windows(application, stream, results, RunSettings(intervals, end_interval))
        if not summary.is_right:
            raise WrongResults(f"{application.name}, {strategy}: {format_verdict(summary)}")
        return summary

    def _warm_up(self, application: Application) -> None:
        """Load compiled code, so that the first run is measured like the others."""
        self._is_warm = True
        self.progress.status("warming up")
        for strategy in self.scale.strategies:
            if strategy not in (HASH, IDEAL, TASKS):
                plan_keys(KeyWorkload.zipf(keys=200, nodes=4).loads(), 4, strategy=strategy, relax=True)
        self.run(application, HASH, self.scale.theta, intervals=1)

    @property
    def _pace(self) -> Pace:
        scale = self.scale
        return Pace(scale.rows_per_batch, _EVERY_MS, scale.batches_per_interval, scale.intervals_per_phase)

    def _keys(self, strategy: str, fluctuation: float, *, words: bool) -> KeyStream:
        names = make_vocabulary(self.scale.words) if words else make_symbols(self.scale.symbols)
        skew, change = (0.0, 0.0) if strategy == IDEAL else (self.scale.skew, fluctuation)
        return KeyStream(names, self.scale.nodes, self.scale.tasks, skew, change, self.seed)
