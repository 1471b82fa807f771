"""One improvement sweep: for every partition and every number of nodes that may come next, the best target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from mdp.exact.blocks import Block
from mdp.exact.guide import Guide
from mdp.kernels.guide import slack_to_the_left
from mdp.kernels.improve import Bounds, Targets, improve
from mdp.kernels.paths import Floats
from mdp.lattice import Lattice
from mdp.process import DecisionProcess


@dataclass(frozen=True)
class Choices:
    """What a block chose: a row of targets for every successor count, as `DecisionProcess.successors` lists them.

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
    def joined(cls, blocks: Sequence["Choices"]) -> "Choices":
        """Those of blocks that follow each other."""
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
    """All that improving a block needs to know. Values, guides and falls are by node count.

    `fallen[n]` is the most by which a value of n nodes is below what it was in the sweep before.
    """

    process: DecisionProcess
    values: Mapping[int, Floats]
    guides: Mapping[int, Guide]
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

    def improved(self, block: Block, before: Choices | None) -> tuple[Choices, int]:
        """The best targets of a block, given its choices of the sweep before, if any; and the minima solved."""
        process, gamma = self.process, self.process.gamma
        state, total = process.workload.state_prefix, process.workload.total_state
        counts = process.successors(block.nodes)
        known = before or Choices.unknown(len(counts), block.states)
        target, others = known.target.copy(), known.others.copy()
        base, upper, lower = (np.zeros(block.states) for _ in range(3))
        stays, score, most = (np.empty(block.states) for _ in range(3))
        source, solved = self.lattices[block.nodes], 0
        for row, after in enumerate(counts):
            lattice, guide = self.lattices[after], self.guides[after]
            solved += improve(
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
        return Choices(target, others, base, upper, lower), solved
