"""Keys with Zipf frequencies that fluctuate from phase to phase, as in paper 000."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.routing import hash_keys
from migration import Assignment
from migration.keys.loads import Nodes
from migration.keys.workloads import KeyWorkload

Shares = NDArray[np.float64]
KeyNumbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeyStream:
    """Draws keys by the frequencies of a `KeyWorkload`: Zipf with skew z, and in every phase one hot node more.

    The load of that node grows by the fluctuation f, because keys of its tasks swap frequencies with others. A node has
    the tasks that it has in a job that starts with `nodes` nodes and `tasks` tasks, whatever moves later: so the same
    arguments give the same stream, however the job is balanced.
    """

    names: pa.Array
    nodes: int
    tasks: int
    skew: float
    fluctuation: float
    seed: int = 0
    _phases: dict[int, KeyWorkload] = field(default_factory=dict, init=False, repr=False)

    def draw(self, batch: int, phase: int, count: int) -> KeyNumbers:
        """Return the keys of a batch, as places in `names`. O(count log keys), once the phase is known."""
        chance = np.random.default_rng([self.seed, batch])
        return np.searchsorted(self._cumulative_shares(phase), chance.random(count), side="right")

    def shares(self, phase: int) -> Shares:
        """Return the probability of every key in a phase."""
        frequency = self._workload(phase).frequency
        return np.asarray(frequency / frequency.sum())

    @cached_property
    def homes(self) -> Nodes:
        """The index of the node that every key is hashed to when the job starts."""
        boundaries = Assignment.even(self.tasks, self.nodes).boundaries
        tasks = hash_keys([self.names]) % self.tasks
        return (np.searchsorted(boundaries, tasks, side="right") - 1).astype(np.int32)

    def _cumulative_shares(self, phase: int) -> Shares:
        cumulative = np.cumsum(self._workload(phase).frequency)
        return np.asarray(cumulative / cumulative[-1])

    def _workload(self, phase: int) -> KeyWorkload:
        """Return a phase; advances from the nearest one that is known. Threads may compute the same one twice."""
        number = max((known for known in tuple(self._phases) if known <= phase), default=0)
        found = self._phases.get(number) or self._first()
        while number < phase:
            found, number = found.advance(self.homes), number + 1
            self._phases[number] = found
        return found

    def _first(self) -> KeyWorkload:
        return KeyWorkload.zipf(len(self.names), self.nodes, self.skew, self.fluctuation, window=1, seed=self.seed)
