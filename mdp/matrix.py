"""The migration transition matrix (paper 003, section 4.2): how likely n nodes become n' at the next migration."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mdp.errors import InvalidMatrix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SUM_TOLERANCE = 1e-9  # rows are divided by their sum, which leaves rounding only
FORMAT = "transition-matrix-1"


@dataclass(frozen=True, eq=False)
class TransitionMatrix:
    """`probabilities[i, j]` is the chance that the migration after one to `nodes[i]` leads to `nodes[j]`.

    Invariant: node counts are positive and rise; every row holds probabilities that sum to 1; read-only.
    The diagonal is the chance of a rebalance at the same number. `observed` counts the transitions behind each entry,
    before smoothing; `origin` records where they came from.
    """

    nodes: tuple[int, ...]
    probabilities: Floats
    observed: Ints
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        nodes: Iterable[int],
        probabilities: Sequence[Sequence[float]] | Floats,
        observed: Sequence[Sequence[int]] | Ints | None = None,
        origin: Mapping[str, Any] | None = None,
    ) -> None:
        counts = tuple(int(count) for count in nodes)
        size = len(counts)
        if not size or counts[0] < 1 or any(b <= a for a, b in pairwise(counts)):
            raise InvalidMatrix(f"node counts {counts} do not rise from at least 1. Give each once, in order.")
        table = _square(probabilities, np.float64, size, "probabilities")
        if not np.isfinite(table).all() or (table < 0).any():
            raise InvalidMatrix("some probability is negative or not finite. Give numbers between 0 and 1.")
        sums = table.sum(axis=1)
        if (off := np.abs(sums - 1) > _SUM_TOLERANCE).any():
            row = int(np.argmax(off))
            raise InvalidMatrix(f"the row of {counts[row]} nodes sums to {sums[row]:g}. Make every row sum to 1.")
        seen = _square(np.zeros((size, size)) if observed is None else observed, np.int64, size, "observed")
        if (seen < 0).any():
            raise InvalidMatrix("some number of observations is negative. Give counts.")
        object.__setattr__(self, "nodes", counts)
        object.__setattr__(self, "probabilities", table)
        object.__setattr__(self, "observed", seen)
        object.__setattr__(self, "origin", dict(origin or {}))

    def probability(self, now: int, after: int) -> float:
        """The probability of `after` nodes next, given `now` nodes; 0 if the matrix does not contain `after`."""
        row = self.probabilities[self.index(now)]
        return float(row[self.nodes.index(after)]) if after in self.nodes else 0.0

    def index(self, nodes: int) -> int:
        if nodes not in self.nodes:
            known = ", ".join(map(str, self.nodes))
            raise InvalidMatrix(f"the matrix covers {known} nodes, not {nodes}. Learn it over a wider range.")
        return self.nodes.index(nodes)

    @property
    def observations(self) -> int:
        return int(self.observed.sum())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TransitionMatrix):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.nodes, self.probabilities.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.nodes, self.probabilities, self.observed, self.origin)

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "nodes": list(self.nodes),
            "probabilities": self.probabilities.tolist(),
            "observed": self.observed.tolist(),
            "origin": dict(self.origin),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        _check_format(document)
        try:
            return cls(document["nodes"], document["probabilities"], document["observed"], document["origin"])
        except InvalidMatrix:
            raise
        except (KeyError, TypeError, ValueError) as cause:
            raise InvalidMatrix(
                f"this is not a transition matrix document: {cause!r}. Write it with to_json()."
            ) from cause

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        try:
            document = json.loads(text)
        except ValueError as cause:
            raise InvalidMatrix(f"this is not JSON: {cause}. Write the matrix with to_json().") from cause
        return cls.from_dict(document)


def _check_format(document: Any) -> None:
    found = document.get("format") if isinstance(document, Mapping) else None
    if found != FORMAT:
        raise InvalidMatrix(f"the format is {found!r}, not {FORMAT!r}. Learn the matrix again.")


def _square(values: Any, kind: type[np.generic], size: int, name: str) -> Any:
    try:
        array = np.array(values, dtype=kind)
    except (TypeError, ValueError) as cause:
        raise InvalidMatrix(f"{name} are not a table of numbers: {cause}. Give {size} x {size} of them.") from cause
    if array.shape != (size, size):
        raise InvalidMatrix(f"{name} have shape {array.shape}. Give {size} x {size}, one row a node count.")
    array.setflags(write=False)
    return array
