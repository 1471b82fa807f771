"""The value table: the result of `project`, which the planner takes as its value function."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

import storage
from mdp.errors import InvalidTable
from mdp.kernels.paths import Floats
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from mdp.table.contents import CONTENTS, TableContents
from migration import Assignment, Workload
from migration.errors import ValueDoesNotFit
from migration.planning.values import AdditiveTerms, SearchGuide, ValueFunction
from storage import Secret, Store
from storage.codec import StoredParts, pack
from storage.errors import ObjectMissing

FORMAT = "value-table-1"
MOST_DRIFT = 0.1  # a tenth of work or state on other tasks than then: noise of measuring is below, a new day above


@dataclass(frozen=True, eq=False)
class ValueTable:
    """Projected costs of one decision process; `strategy="mtm"` of `migration.plan` takes it as `value`.

    `facts` describe the projection: proven error or measured quality, partitions, seconds. A workload may drift from
    that of the projection by up to `most_drift` (see `measure_drift`); beyond, or for another tau or a node count that
    the matrix does not contain, `fit_to` raises `ValueDoesNotFit`.
    """

    process: DecisionProcess
    contents: TableContents
    facts: Mapping[str, Any] = field(default_factory=dict)
    most_drift: float = MOST_DRIFT

    @property
    def gamma(self) -> float:
        return self.process.gamma

    @property
    def kind(self) -> str:
        return self.contents.kind

    def value(self, partition: Assignment | Sequence[int]) -> float:
        """The projected cost of an assignment, or of the boundaries of one, in the unit of the projection's states."""
        return self.contents.value(partition.boundaries if isinstance(partition, Assignment) else partition)

    def guide(self, nodes: int) -> SearchGuide:
        return self.contents.guide(nodes, drifted=False)

    def drift(self, workload: Workload) -> float:
        return measure_drift(self.process.workload, workload)

    def fit_to(self, workload: Workload, nodes: int, tau: float) -> ValueFunction:
        """The table in the unit of that workload's states; raises `ValueDoesNotFit` if it does not cover it."""
        then = self.process
        if workload.tasks != then.tasks:
            raise ValueDoesNotFit(
                f"the table is for {then.tasks} tasks, the workload has {workload.tasks}",
                made_for_tasks=then.tasks,
                tasks=workload.tasks,
            )
        if nodes not in then.nodes:
            known = f"{then.nodes[0]} to {then.nodes[-1]}"
            raise ValueDoesNotFit(f"the table is for {known} nodes, not {nodes}", nodes=nodes)
        if tau != then.tau:
            raise ValueDoesNotFit(f"the table is for tau={then.tau:g}, not {tau:g}", tau=tau)
        found = self.drift(workload)
        if found > self.most_drift:
            raise ValueDoesNotFit(
                f"the workload has drifted by {found:.0%} since the table was made, more than {self.most_drift:.0%}",
                drift=found,
            )
        factor = workload.total_state / then.workload.total_state if then.workload.total_state else 1.0
        return _ScaledValues(self.contents, self.gamma, factor, drifted=found > 0)

    def save(self, url: str, name: str, *, secret: Secret, **settings: Any) -> str:
        """Sign the table and write it to the store; returns its key."""
        arrays, facts = self.contents.to_parts()
        process = self.process
        meta: dict[str, Any] = {
            "format": FORMAT,
            "kind": self.kind,
            "matrix": process.matrix.to_dict(),
            "tau": process.tau,
            "gamma": process.gamma,
            "relax": process.relax,
            "most_drift": self.most_drift,
            "contents": dict(facts),
            "facts": dict(self.facts),
        }
        parts = {"work": process.workload.work, "state": process.workload.state, **arrays}
        key = _key(name)
        store = storage.open(url, **settings)
        try:
            store.put(key, pack(parts, key=key, secret=secret, meta=meta))
        finally:
            store.close()
        return key

    @classmethod
    def load(cls, url: str, name: str, *, secret: Secret, **settings: Any) -> Self:
        """Load a table from a store: the description now, values of a node count on first use."""
        return cls.read(storage.open(url, **settings), name, secret=secret)

    @classmethod
    def read(cls, store: Store, name: str, *, secret: Secret) -> Self:
        """The same from an open store, which must stay open."""
        try:
            parts = StoredParts(store, _key(name), secret)
        except ObjectMissing as missing:
            raise InvalidTable(
                f"there is no value table {name!r} in {store.url}. Project one with that name."
            ) from missing
        meta = parts.meta
        if meta.get("format") != FORMAT or meta.get("kind") not in CONTENTS:
            raise InvalidTable(f"{name!r} has format {meta.get('format')!r}, expected {FORMAT!r}. Project it again.")
        process = DecisionProcess(
            Workload(parts["work"], parts["state"]),
            TransitionMatrix.from_dict(meta["matrix"]),
            meta["tau"],
            meta["gamma"],
            meta["relax"],
        )
        contents = CONTENTS[meta["kind"]].from_parts(process, parts, meta["contents"])
        return cls(process, contents, meta["facts"], meta["most_drift"])


@dataclass(frozen=True)
class _ScaledValues:
    """The contents of a table, scaled by the growth of all state since the projection."""

    contents: TableContents
    gamma: float
    factor: float
    drifted: bool

    def fit_to(self, workload: Workload, nodes: int, tau: float) -> ValueFunction:  # noqa: ARG002 - it is
        return self

    def value(self, boundaries: Sequence[int]) -> float:
        return self.factor * self.contents.value(boundaries)

    def guide(self, nodes: int) -> SearchGuide:
        guide = self.contents.guide(nodes, drifted=self.drifted)
        if self.factor == 1.0:
            return guide
        terms, factor = guide.terms, self.factor
        interval = None if terms.interval is None else factor * terms.interval
        grown = AdditiveTerms(factor * terms.boundary, interval, factor * terms.constant)
        return guide._replace(terms=grown, above=factor * guide.above)


def _key(name: str) -> str:
    return f"tables/{name}.table"


def measure_drift(then: Workload, now: Workload) -> float:
    """The share of all work, or of all state, that has moved to other tasks: the larger of the two, 0 to 1.

    Half the sum over tasks of |share then - share now| (total variation). Uniform growth is no drift:
    balance and cost depend on shares only.
    """
    return max(_moved_share(then.work, now.work), _moved_share(then.state, now.state))


def _moved_share(then: Floats, now: Floats) -> float:
    return float(np.abs(_shares(then) - _shares(now)).sum()) / 2


def _shares(weights: Floats) -> Floats:
    total = weights.sum()
    return weights / total if total else np.full(len(weights), 1 / len(weights))
