"""Choice of the unit of a row: by its key, where the grouping says so, else by a strategy that considers loads."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from elastic import threads
from elastic.routing.groupings import Hashes, PartialGrouping, ShuffleGrouping
from elastic.routing.partial import SplitEstimates, SplitPlacer
from elastic.routing.routing import Routing
from elastic.routing.shuffle.forecast import NO_FORECAST, Forecast
from elastic.routing.shuffle.placer import ShufflePlacer
from elastic.routing.unit_numbers import UnitNumbers

HALF_LIFE_SECONDS = 10.0  # of load estimates: long enough to be of many rows, short enough to follow what changes


class RowPlacer(Protocol):
    """Chooses the unit of every row that one sender sends to one stage in one batch."""

    @property
    def group_rows(self) -> int:
        """Number of rows that justify a call of their own, to measure their cost; 0: the stage is not measured."""
        ...

    @property
    def seconds(self) -> Mapping[str, float]:
        """The expected seconds of all rows so far, by node; empty where that is not estimated."""
        ...

    def unit_numbers(self, hashes: Hashes) -> UnitNumbers:
        """Return the unit number of each row, from the hash of its key."""
        ...


class KeyPlacer:
    """The key of a row decides."""

    group_rows = 0
    seconds: Mapping[str, float] = MappingProxyType({})

    def __init__(self, routing: Routing, stage: int) -> None:
        self._routing = routing
        self._stage = stage

    def unit_numbers(self, hashes: Hashes) -> UnitNumbers:
        return self._routing.unit_numbers(hashes, self._stage)


class UnitChooser:
    """Chooses the unit of every row that one process sends for one job.

    What is known of loads only here, the rows of partial stages, outlives batches; what all senders know of a shuffled
    stage comes with the batch, in its forecast. Thread-safe.
    """

    def __init__(
        self, half_life_seconds: float = HALF_LIFE_SECONDS, clock: Callable[[], float] = threads.monotonic
    ) -> None:
        self._half_life_seconds = half_life_seconds
        self._clock = clock
        self._estimates: dict[int, SplitEstimates] = {}  # by stage
        self._lock = threads.Lock()

    def place(self, routing: Routing, stage: int, forecast: Forecast = NO_FORECAST) -> RowPlacer:
        """Return what chooses the units of the rows of one sender in one batch."""
        match routing.groupings[stage]:
            case PartialGrouping() as partial:
                with self._lock:
                    if stage not in self._estimates:
                        self._estimates[stage] = SplitEstimates(self._half_life_seconds, self._clock)
                return SplitPlacer(partial, routing, stage, self._estimates[stage])
            case ShuffleGrouping() as shuffle:
                return ShufflePlacer(shuffle, routing, stage, forecast)
            case _:
                return KeyPlacer(routing, stage)

    def unit_numbers(self, hashes: Hashes, routing: Routing, stage: int) -> UnitNumbers:
        """Return the unit number of each row of a batch of which nothing is known before."""
        return self.place(routing, stage).unit_numbers(hashes)
