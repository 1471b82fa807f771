"""The contents of a table: exact values of all balanced partitions, or an additive value; by kind in `CONTENTS`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from mdp.approximate.lookahead import Lookahead
from mdp.approximate.projection import AdditiveProjection
from mdp.approximate.terms import terms_from_parts, terms_to_parts
from mdp.array_store import Arrays
from mdp.exact.guide import EdgeGuide, fit_additive_terms
from mdp.exact.iteration import ExactProjection
from mdp.exact.values import ExactValues
from mdp.kernels.paths import Floats
from mdp.lattice import Lattice
from mdp.process import DecisionProcess
from migration.planning.values import AdditiveTerms, SearchGuide

Facts = Mapping[str, Any]
Value = TypeVar("Value")

DRIFTED_CANDIDATES = 60  # targets scored where no proof holds: more changed no plan in simulation


class TableContents(Protocol):
    """Values of partitions for one decision process."""

    kind: ClassVar[str]

    @classmethod
    def from_parts(cls, process: DecisionProcess, arrays: Arrays, facts: Facts) -> Self: ...

    def to_parts(self) -> tuple[Arrays, Facts]: ...

    def value(self, boundaries: Sequence[int]) -> float: ...

    def guide(self, nodes: int, *, drifted: bool) -> SearchGuide:
        """The planner's guide. Proofs hold for the workload of the projection, not for one that has drifted."""
        ...


class LazyByNodes(Mapping[int, Value], Generic[Value]):
    """A value per node count, made on first use."""

    def __init__(self, nodes: Sequence[int], make: Callable[[int], Value]) -> None:
        self._nodes = tuple(nodes)
        self._make = make
        self._known: dict[int, Value] = {}

    def __getitem__(self, nodes: int) -> Value:
        if nodes not in self._nodes:
            raise KeyError(nodes)
        if nodes not in self._known:
            self._known[nodes] = self._make(nodes)
        return self._known[nodes]

    def __iter__(self) -> Iterator[int]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


class ExactContents:
    """C of every balanced partition; only the node counts that the planner uses are loaded."""

    kind: ClassVar[str] = "exact"

    def __init__(
        self,
        process: DecisionProcess,
        values: Mapping[int, Floats],
        guides: Mapping[int, EdgeGuide],
        terms: Mapping[int, AdditiveTerms],
        above: Mapping[int, float],
    ) -> None:
        self._values = values
        self._guides = guides
        self._terms = terms
        self._above = above
        self._exact = ExactValues(process, values, guides)

    @classmethod
    def of(cls, projection: ExactProjection) -> Self:
        process, values = projection.process, projection.values
        lattices = {nodes: Lattice(nodes, process.first[nodes]) for nodes in process.nodes}
        fits = {nodes: fit_additive_terms(lattice, values[nodes]) for nodes, lattice in lattices.items()}
        return cls(
            process,
            values,
            {nodes: EdgeGuide.fit(lattice, values[nodes]) for nodes, lattice in lattices.items()},
            {nodes: terms for nodes, (terms, _) in fits.items()},
            {nodes: above for nodes, (_, above) in fits.items()},
        )

    @classmethod
    def from_parts(cls, process: DecisionProcess, arrays: Arrays, facts: Facts) -> Self:
        nodes = process.nodes
        return cls(
            process,
            LazyByNodes(nodes, lambda n: arrays[f"values-{n}"]),
            LazyByNodes(nodes, lambda n: EdgeGuide(arrays[f"term-{n}"], arrays[f"above-{n}"])),
            LazyByNodes(nodes, lambda n: terms_from_parts(n, arrays, facts)),
            {n: facts["above"][str(n)] for n in nodes},
        )

    def to_parts(self) -> tuple[Arrays, Facts]:
        arrays, constants = terms_to_parts(self._terms)
        for nodes, guide in self._guides.items():
            arrays |= {f"values-{nodes}": self._values[nodes]}
            arrays |= {f"term-{nodes}": guide.term, f"above-{nodes}": guide.above}
        return arrays, {**constants, "above": {str(nodes): above for nodes, above in self._above.items()}}

    def value(self, boundaries: Sequence[int]) -> float:
        return self._exact.value(boundaries)

    def guide(self, nodes: int, *, drifted: bool) -> SearchGuide:
        if drifted:
            return SearchGuide(self._terms[nodes], inf, lazy=True, most_candidates=DRIFTED_CANDIDATES)
        return SearchGuide(self._terms[nodes], self._above[nodes], lazy=True)


class AdditiveContents:
    """An additive value with two steps of foresight."""

    kind: ClassVar[str] = "additive"

    def __init__(self, projection: AdditiveProjection) -> None:
        self._projection = projection
        self._lookahead: Lookahead = projection.lookahead()

    @classmethod
    def from_parts(cls, process: DecisionProcess, arrays: Arrays, facts: Facts) -> Self:
        return cls(AdditiveProjection.from_parts(process, arrays, facts))

    def to_parts(self) -> tuple[Arrays, Facts]:
        return self._projection.to_parts()

    def value(self, boundaries: Sequence[int]) -> float:
        return self._lookahead.value(boundaries)

    def guide(self, nodes: int, *, drifted: bool) -> SearchGuide:  # noqa: ARG002 - nothing was proven in the first place
        return self._lookahead.guide(nodes)


CONTENTS: Mapping[str, type[TableContents]] = {kind.kind: kind for kind in (ExactContents, AdditiveContents)}
