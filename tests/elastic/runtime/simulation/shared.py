"""What the driver and the nodes of a simulated world share."""

import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from elastic.results import Description, ResultLog
from elastic.routing import IntervalRouting
from migration import Assignment
from storage import Secret
from storage.errors import StoreUnavailable
from storage.state import Collector, InputLog, StateManager
from tests.elastic.runtime.simulation.agenda import Agenda
from tests.elastic.runtime.simulation.faults import Faults
from tests.elastic.runtime.simulation.store import FaultyStore

JOB = "simulated"
SECRET = Secret.of("a secret of the simulated world")


@dataclass
class Shared:
    """The seed's randomness, the store and what is in it, the agenda, and the story of all that happened."""

    chance: random.Random
    pipeline: Description
    faults: Faults
    nodes: int
    story: list[tuple[Any, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = FaultyStore(self.chance, lambda: self.faults.store)
        self.agenda = Agenda(self.chance, lambda: self.faults)
        self.log = InputLog(self.store, SECRET, JOB)
        self.states = StateManager(self.store, SECRET, JOB, threads=1)
        self.results = ResultLog(self.store, SECRET, JOB)
        self.routing = IntervalRouting(Assignment.even(tasks=self.pipeline.tasks, nodes=self.nodes))

    def happens(self, probability: float) -> bool:
        return self.chance.random() < probability

    def collect(self) -> None:
        """What the store does not give up now is collected another time."""
        with suppress(StoreUnavailable):
            Collector(self.store, SECRET, JOB).collect()

    def tell(self, *words: Any) -> None:
        """Add to the story; not put into text yet, since most stories are never read."""
        self.story.append(words)
