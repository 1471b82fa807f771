"""Pending actions of a simulated world, which happen in an order that the seed chooses, and its lossy wire."""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from storage.errors import StoreUnavailable
from tests.elastic.runtime.simulation.faults import Faults

_LONG_DELAYS = (20, 100, 400)  # steps of the world; a migration takes some hundred


@dataclass(frozen=True)
class Action:
    """Something that happens once, at some time. `writes`: a driver that dies may have done it or not."""

    run: Callable[[], None]
    writes: bool = False


class Agenda:
    """Pending actions; `run_one` picks one of them by chance."""

    def __init__(self, chance: random.Random, faults: Callable[[], Faults]) -> None:
        self.lost = self.repeated = 0  # messages
        self._chance = chance
        self._faults = faults
        self._pending: list[Action] = []
        self._delayed: list[tuple[int, int, Action]] = []  # a heap by the step at which they may happen
        self._step = 0
        self._numbers = count()

    def add(self, run: Callable[[], None], *, writes: bool = False, delay: int = 0) -> None:
        action = Action(run, writes)
        if delay:
            heapq.heappush(self._delayed, (self._step + delay, next(self._numbers), action))
        else:
            self._pending.append(action)

    def add_store_call(self, call: Callable[[], None]) -> None:
        """A call to the store by the driver, repeated while the store is unavailable; it must be safe to repeat."""

        def attempt() -> None:
            try:
                call()
            except StoreUnavailable:
                self.add_store_call(call)

        self.add(attempt, writes=True)

    def transmit(self, deliver: Callable[[], None], is_sending: Callable[[], bool] = lambda: True) -> None:
        """Send a message as `Outbox` and `Reports` do: repeat it until its acknowledgement arrives.

        The message or its acknowledgement may get lost; in the second case it is delivered twice. A sender that is not
        sending any more repeats nothing.
        """
        faults = self._faults()

        def attempt() -> None:
            kind = self._chance.random()
            if kind >= faults.loss:
                deliver()
            if kind < faults.loss + faults.duplicate and is_sending():
                self.lost += kind < faults.loss
                self.repeated += kind >= faults.loss
                self.transmit(deliver, is_sending)

        delayed = self._chance.random() < faults.delay
        self.add(attempt, delay=self._chance.choice(_LONG_DELAYS) if delayed else 0)

    def run_one(self) -> None:
        if self._pending:
            self._pending.pop(self._chance.randrange(len(self._pending))).run()

    def tick(self) -> None:
        """One more step of the world has passed."""
        self._step += 1
        while self._delayed and self._delayed[0][0] <= self._step:
            self._pending.append(heapq.heappop(self._delayed)[2])

    def end_life(self) -> None:
        """The driver dies: half of its writes under way happen, no answer arrives, no message either."""
        for action in [action for action in self._pending if action.writes]:
            if self._chance.random() < 0.5:
                action.run()
        self._pending.clear()
        self._delayed.clear()
