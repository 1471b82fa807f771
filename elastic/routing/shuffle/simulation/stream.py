"""The input of a simulation: rows that arrive over time, and the execution time of each on each instance."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.shuffle.sketch import Floats, Hashes


@dataclass(frozen=True, eq=False)
class SimulatedStream:
    """Rows with hashes of their cost keys, arrival times and costs, and the slowness of the instances.

    `slowness` has a row per phase, of equally many rows, and a column per instance: a row takes its cost times the
    slowness. Invariant: arrivals ascend, costs and slowness are positive and finite, and there is at least one row and
    one instance.
    """

    hashes: Hashes
    arrivals: Floats
    costs: Floats
    slowness: Floats

    def __post_init__(self) -> None:
        is_sized = len(self.hashes) == len(self.arrivals) == len(self.costs) > 0 and self.slowness.ndim == 2
        if not is_sized or not self.slowness.size:
            raise InvalidJob(
                f"{len(self.hashes)} hashes, {len(self.arrivals)} arrivals, {len(self.costs)} costs and a slowness of "
                f"{self.slowness.shape} are no stream. Give every row each, and a slowness by phase and instance."
            )
        is_positive = all(np.isfinite(one).all() and (one > 0).all() for one in (self.costs, self.slowness))
        if not is_positive or not np.isfinite(self.arrivals).all() or (np.diff(self.arrivals) < 0).any():
            raise InvalidJob("rows arrive out of order or take no time. Sort them by arrival, and use costs above 0.")

    @property
    def rows(self) -> int:
        return len(self.hashes)

    @property
    def instances(self) -> int:
        return int(self.slowness.shape[1])

    @cached_property
    def phase_of(self) -> npt.NDArray[np.int64]:
        """The phase of each row."""
        return np.arange(self.rows) * len(self.slowness) // self.rows

    def seconds(self, row: int, instance: int) -> float:
        """Return the execution time of a row on an instance."""
        return float(self.costs[row] * self.slowness[self.phase_of[row], instance])
