"""One improvement sweep: the best target of every partition, for every node count that may come next, in blocks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mdp.exact.guide import EdgeGuide
from mdp.kernels.guide import slack_to_the_left
from mdp.kernels.improve import Bounds, Targets, improve
from mdp.kernels.paths import Floats
from mdp.lattice import Lattice
from mdp.process import DecisionProcess

BLOCK_STATES = 8_192  # about a second of work: small enough to share out evenly, large next to the cost of sending it


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


def split_into_blocks(lattices: Mapping[int, Lattice]) -> Iterator[Block]:
    """All states in blocks. These depend on the process alone, not on how many workers there are, as results must."""
    for nodes, lattice in lattices.items():
        for first in range(0, lattice.count, BLOCK_STATES):
            yield Block(nodes, first, min(first + BLOCK_STATES, lattice.count))


@dataclass(frozen=True)
class Choices:
    """The choices of a block: a row of targets per successor count, as `DecisionProcess.successors` lists them.

    `others[s, i]` is the most that any target but the chosen one could score, a proof that outlives the sweep. `base`
    is the expected cost of the next migration; `upper` and `lower` enclose the expectation of cost + gamma * value over
    successors other than n itself, for the best targets there are.
    """

    target: Targets
    others: Bounds
    base: Floats
    upper: Floats
    lower: Floats

    @classmethod
    def unknown(cls, successors: int, states: int) -> "Choices":
        return cls(
            np.full((successors, states), -1, np.int32),
            np.zeros((successors, states), np.float32),
            np.zeros(states),
            np.zeros(states),
            np.zeros(states),
        )

    @classmethod
    def concatenate(cls, blocks: Sequence["Choices"]) -> "Choices":
        """The choices of consecutive blocks as one."""
        return cls.of({name: np.concatenate([getattr(one, name) for one in blocks], axis=-1) for name in cls.names()})

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> "Choices":
        """From arrays by name."""
        return cls(**{name: arrays[name] for name in cls.names()})


@dataclass(frozen=True)
class Sweep:
    """The input of improving a block. Values, guides and falls are by node count.

    `fallen[n]` is the most by which a value of n nodes is below what it was in the sweep before.
    """

    process: DecisionProcess
    values: Mapping[int, Floats]
    guides: Mapping[int, EdgeGuide]
    fallen: Mapping[int, float]
    tolerance: float

    @cached_property
    def lattices(self) -> dict[int, Lattice]:
        return {nodes: Lattice(nodes, self.process.first[nodes]) for nodes in self.process.nodes}

    @cached_property
    def _slack_left(self) -> dict[int, Floats]:
        found = {}
        for nodes, lattice in self.lattices.items():
            slack = self.process.gamma * self.guides[nodes].above
            found[nodes] = slack_to_the_left(slack, lattice.low, lattice.high, lattice.edge_at, lattice.begin)
        return found

    def improve(self, block: Block, before: Choices | None) -> tuple[Choices, int]:
        """Find the best targets of a block, given its choices of the sweep before, if any; and the minima solved."""
        process, gamma = self.process, self.process.gamma
        state, total = process.workload.state_prefix, process.workload.total_state
        counts = process.successors(block.nodes)
        known = before or Choices.unknown(len(counts), block.states)
        target, others = known.target.copy(), known.others.copy()
        base, upper, lower = (np.zeros(block.states) for _ in range(3))
        stays, score, most = (np.empty(block.states) for _ in range(3))
        source, solve_normal_equations = self.lattices[block.nodes], 0
        for row, after in enumerate(counts):
            lattice, guide = self.lattices[after], self.guides[after]
            solve_normal_equations += improve(
                state,
                gamma,
                source.low,
                source.high,
                source.furthest,
                source.before,
                block.first,
                lattice.low,
                lattice.high,
                lattice.before,
                lattice.edge_at,
                lattice.begin,
                gamma * guide.term,
                lattice.edge_rank,
                gamma * guide.above,
                self._slack_left[after],
                self.values[after],
                self.tolerance,
                gamma * self.fallen[after],
                target[row],
                others[row],
                stays,
                score,
                most,
            )
            chance = process.matrix.probability(block.nodes, after)
            base += chance * (total - stays)
            upper += chance * (total - score)
            lower += chance * (total - most)
        return Choices(target, others, base, upper, lower), solve_normal_equations
