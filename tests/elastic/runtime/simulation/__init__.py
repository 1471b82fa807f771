"""A seeded world: the protocol's own coordinator and hosts, the real storage code, and hostile surroundings.

Messages are delayed, reordered, lost and doubled; operations of the store fail, some after they happened; nodes and the
driver die at any moment, also between a write and its answer; processes that were replaced continue to send. Every seed
is one story, and a failure prints it. `World` is the driver and the passing of time, `Node` a node, `Oracle` tells what
must come out.
"""

from tests.elastic.runtime.simulation.faults import Faults
from tests.elastic.runtime.simulation.world import World

__all__ = ["Faults", "World"]
