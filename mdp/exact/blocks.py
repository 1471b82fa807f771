"""The states of the decision process in blocks: what one worker improves at a time.

Blocks depend on the process alone, not on how many workers there are, so that results do not either.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mdp.lattice import Lattice

BLOCK_STATES = 8_192  # a second or so of work: small enough to share out evenly, large next to handing it out


class Block(NamedTuple):
    """Partitions onto `nodes` nodes with ranks from `first` up to `stop`."""

    nodes: int
    first: int
    stop: int

    @property
    def states(self) -> int:
        return self.stop - self.first

    @property
    def name(self) -> str:
        return f"{self.nodes}-{self.first}"


def blocks_of(lattices: Mapping[int, Lattice], states: int = BLOCK_STATES) -> Iterator[Block]:
    for nodes, lattice in lattices.items():
        for first in range(0, lattice.count, states):
            yield Block(nodes, first, min(first + states, lattice.count))
