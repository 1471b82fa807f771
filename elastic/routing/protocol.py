"""The routing protocol: rows to units, units to nodes.

The engine asks a routing two questions and does not depend on how they are answered. `unit_numbers`: which unit does
each row belong to? The sender asks once per row and logs the answer, so a replay never asks again and an answer may
depend on more than the hash. `owners`: which nodes get the rows of a unit? Both answers hold for one `epoch`; a change
of ownership is a new routing with a higher epoch.

How the papers' schemes fit:

- *Intervals* (`IntervalRouting`): task = hash mod m, one owner per task, contiguous intervals.
- *Key table*: some keys have units of their own, numbered from m on, and a table names the nodes of these units; all
  other keys are hashed.
- *Partial key grouping*: every key has two units, by two hashes, and each sender takes the one to which it has sent
  less; a later stage merges the two halves of a key.
- *Shuffle* (stateless): any unit will do, so the sender takes the one whose node is least busy by the nodes' reports.
- *Replicas*: `owners` names the active node first and the standbys after it; all of them get the rows.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from elastic.routing.unit_numbers import UnitNumbers
from storage.state import UnitId


class Routing(Protocol):
    """One version of the routing; an immutable value that every sender and node gets.

    Invariant: every unit whose number `unit_numbers` returns is among `units` of that stage, has at least one owner,
    and is in `units_on` of each of its owners.
    """

    kind: ClassVar[str]  # its name in ROUTINGS

    @property
    def epoch(self) -> int:
        """The version of this routing."""
        ...

    def unit_numbers(self, hashes: npt.NDArray[np.int64], stage: int) -> UnitNumbers:
        """Return the unit number of each row, from the hash of its key; vectorised, since it sees every row."""
        ...

    def owners(self, unit: UnitId) -> tuple[str, ...]:
        """Return the nodes that get the rows of a unit; the engine takes the outputs of the first."""
        ...

    def units(self, stage: int) -> Sequence[UnitId]:
        """Return all units of a stage, ascending."""
        ...

    def units_on(self, node: str, stages: Iterable[int]) -> list[UnitId]:
        """Return the units of these stages that a node owns, ascending; none for an unknown node."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return a document that names its kind, for `routing_from_json`."""
        ...

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self: ...
