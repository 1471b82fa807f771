"""The drifting workload of paper 000 for tests: Zipf work that swaps between keys of one node and all others."""

import numpy as np

from migration.keys import KeyLoads
from migration.keys.loads import Floats, Nodes


class DriftingLoads:
    """Keys whose work changes from step to step, with state over a window of the last `window` steps.

    A step swaps the work of keys of one random node with that of keys elsewhere, always up or always down, until its
    load has changed by `fluctuation` times the smaller of the old and the new load.
    """

    def __init__(
        self, keys: int, nodes: int, seed: int, skew: float = 0.85, fluctuation: float = 1.0, window: int = 5
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._nodes, self._fluctuation, self._window = nodes, fluctuation, window
        work = 1.0 / np.arange(1, keys + 1) ** skew
        self._work: Floats = self._rng.permutation(10.0 * keys / work.sum() * work)
        self._past = [self._work] * window
        self.home: Nodes = self._rng.integers(0, nodes, keys).astype(np.int32)
        self.current: Nodes = self.home.copy()

    def loads(self) -> KeyLoads:
        size = np.sum(self._past, axis=0)
        return KeyLoads(np.arange(len(self._work)), self.home, self.current, self._work, size)

    def step(self) -> None:
        rng, work = self._rng, self._work.copy()
        node, goes_up = rng.integers(self._nodes), rng.random() < 0.5
        inside, outside = np.flatnonzero(self.current == node), np.flatnonzero(self.current != node)
        load = float(work[inside].sum())
        goal = load * (1 + self._fluctuation) if goes_up else load / (1 + self._fluctuation)
        for _ in range(400):
            for mine, other in zip(rng.choice(inside, 500).tolist(), rng.choice(outside, 500).tolist(), strict=True):
                if (work[other] > work[mine]) == goes_up:
                    load += work[other] - work[mine]
                    work[mine], work[other] = work[other], work[mine]
                    if (load >= goal) == goes_up:
                        self._remember(work)
                        return
        self._remember(work)

    def _remember(self, work: Floats) -> None:
        self._work = work
        self._past = [*self._past[1:], work]
