"""Simulates operator instances that a scheduler of paper 004 feeds, row by row.

`simulate` runs a `SimulatedStream` under round-robin, full knowledge or a `Reading` of POSG. `event_heap` is its
reference, and both drive the same machines.
"""

from elastic.routing.shuffle.simulation.readings import READINGS, Reading
from elastic.routing.shuffle.simulation.simulator import FULL_KNOWLEDGE, ROUND_ROBIN, SimulationResult, simulate
from elastic.routing.shuffle.simulation.stream import SimulatedStream

__all__ = [
    "FULL_KNOWLEDGE",
    "READINGS",
    "ROUND_ROBIN",
    "Reading",
    "SimulatedStream",
    "SimulationResult",
    "simulate",
]
