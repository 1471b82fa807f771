"""What a routing is: rows to slots, slots to nodes, and what each slot's state is called.

The engine asks a routing four questions, and is the same for all answers. `slots_of`: which slot does each row go to?
It is asked once, by who sends the row; the answer is in the input log, so a replay never asks again, and an answer may
depend on more than the hash. `owners`: which nodes get the rows of a slot? `unit`: under which name is its state saved
and moved? `wants_heavy_hitters`: shall nodes track their heaviest keys, so that a planner can make the next routing?
Every answer is given for one `epoch`; a change of mind is a new routing with a higher one.

How the ways in the papers fit:

- *Intervals* (`IntervalRouting`): slot = hash mod m, one owner each, contiguous intervals.
- *Key table*: some keys have slots of their own, numbered from m on, and the table says where these live; the rest is
  hashed. The unit of movement is then a key, for a slot's unit can be a set of keys of its task. It wants heavy
  hitters, to know which keys to list.
- *Partial key grouping*: every key has two slots, by two hashes, and each sender takes the one to which it has sent
  less; a stage after it merges the two halves of a key.
- *Shuffle* (stateless): any slot will do, so the sender takes the one whose node is least busy by the nodes' reports.
- *Replicas*: `owners` names the active node first and the backups after it; all of them get the rows.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from storage.state import Unit

Slots = npt.NDArray[np.int64]


class Routing(Protocol):
    """One version of who gets what; a value that is sent to all senders and nodes.

    Invariant: every slot that `slots_of` can answer is among `slots` of that stage, has at least one owner, and is on
    `slots_on` of each of its owners. Different slots have different units.
    """

    kind: ClassVar[str]  # its name in ROUTINGS

    @property
    def epoch(self) -> int:
        """Which version this is."""
        ...

    @property
    def wants_heavy_hitters(self) -> bool:
        """Whether the next version depends on which keys are heavy."""
        ...

    def slots_of(self, hashes: npt.NDArray[np.int64], stage: int) -> Slots:
        """The slot of each row, from the hash of its key; vectorised, for it sees every row."""
        ...

    def owners(self, slot: int) -> tuple[str, ...]:
        """The nodes that get the rows of a slot; the first one's outputs count."""
        ...

    def unit(self, slot: int) -> Unit:
        """The name of the slot's state in the store."""
        ...

    def slots(self, stage: int) -> Sequence[int]:
        """All slots of a stage, ascending."""
        ...

    def slots_on(self, node: str, stages: Iterable[int]) -> list[int]:
        """The slots of these stages that a node owns, ascending; none for a node that is not known."""
        ...

    def to_json(self) -> dict[str, Any]:
        """A document that tells its kind, for `routing_from_json`."""
        ...

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self: ...
