"""The result of training: an additive value for the planner, with its quality in simulation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mdp.approximate.lookahead import DEFAULT_CANDIDATES, Lookahead
from mdp.approximate.terms import Arrays, edge_terms, terms_from_parts, terms_to_parts
from mdp.errors import InvalidTable
from mdp.kernels.paths import Floats
from mdp.lattice import Lattice
from mdp.process import DecisionProcess
from mdp.simulate import Comparison
from migration import Workload
from migration.errors import ValueDoesNotFit
from migration.planning.values import AdditiveValue, SearchGuide, ValueFunction

SSM, ONE_STEP, TWO_STEPS = "ssm", "one step", "two steps"


@dataclass(frozen=True, eq=False)
class AdditiveProjection:
    """V for every node count of a process: near its projected costs, with no proven error.

    A value function for the planner. `comparison` sets its policies against `ssm` on node counts drawn from the matrix;
    if one step of foresight with V moves more state than `ssm`, `fit_to` refuses.
    """

    process: DecisionProcess
    additive: AdditiveValue
    terms: str
    comparison: Comparison

    @property
    def gamma(self) -> float:
        return self.process.gamma

    @property
    def gain_over_ssm(self) -> float:
        """The share of the state moved by `ssm` that one step of foresight with V saves; negative if it moves more."""
        return self.comparison.gain(ONE_STEP)

    def fit_to(self, workload: Workload, nodes: int, tau: float) -> ValueFunction:
        self.additive.fit_to(workload, nodes, tau)
        if (gain := self.gain_over_ssm) < 0:
            raise ValueDoesNotFit(f"in simulation it moved {-gain:.1%} more state than ssm", gain_over_ssm=gain)
        return self

    def value(self, boundaries: Sequence[int]) -> float:
        return self.additive.value(boundaries)

    def guide(self, nodes: int) -> SearchGuide:
        return self.additive.guide(nodes)._replace(lazy=True)

    def lookahead(self, candidates: int = DEFAULT_CANDIDATES) -> Lookahead:
        """The value function with one more step of foresight: better, at some hundred microseconds a plan."""
        return Lookahead(self.process, self.additive, candidates)

    def edge_terms(self, lattice: Lattice) -> Floats:
        """V as terms of the edges of a lattice."""
        return edge_terms(self.additive.by_nodes[lattice.parts], lattice)

    def starting_terms(self) -> dict[int, Floats]:
        """The same for every node count of the process, as a start for an exact projection."""
        return {nodes: self.edge_terms(Lattice(nodes, first)) for nodes, first in self.process.first.items()}

    def to_parts(self) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
        """Arrays by name and JSON metadata, without the process."""
        arrays, facts = terms_to_parts(self.additive.by_nodes)
        moved = {policy: moved.tolist() for policy, moved in self.comparison.moved.items()}
        return arrays, {**facts, "terms": self.terms, "moved": moved}

    @classmethod
    def from_parts(cls, process: DecisionProcess, arrays: Arrays, facts: Mapping[str, Any]) -> Self:
        try:
            by_nodes = {nodes: terms_from_parts(nodes, arrays, facts) for nodes in process.nodes}
            moved = {policy: np.array(means) for policy, means in facts["moved"].items()}
            return cls(process, AdditiveValue(by_nodes, process.gamma), facts["terms"], Comparison(moved))
        except (KeyError, IndexError) as cause:
            raise InvalidTable(f"a part of the additive value is missing: {cause!r}. Project it again.") from cause
