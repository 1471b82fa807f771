"""The value table: what `project` leaves, and what the planner plans with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import storage
from mdp.errors import InvalidTable
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from mdp.table.contents import CONTENTS, Contents
from mdp.table.drift import MOST_DRIFT, drift
from migration import Assignment, Workload
from migration.errors import ValueDoesNotFit
from migration.planning.values import AdditiveTerms, Guide, ValueFunction
from storage import Secret, Store
from storage.codec import StoredParts, pack
from storage.errors import ObjectMissing

FORMAT = "value-table-1"


@dataclass(frozen=True, eq=False)
class ValueTable:
    """Projected costs of one decision process; `strategy="mtm"` of `migration.plan` takes it as `value`.

    `facts` tell how it was made: proven error or measured quality, partitions, seconds. A workload may drift from that
    of the projection by up to `most_drift` (see `mdp.table.drift`); where it has drifted further, or the planner asks
    with another tau or for a node count that the matrix does not know, the table says that it does not fit.
    """

    process: DecisionProcess
    contents: Contents
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

    def guide(self, nodes: int) -> Guide:
        return self.contents.guide(nodes, drifted=False)

    def drift(self, workload: Workload) -> float:
        return drift(self.process.workload, workload)

    def fitted(self, workload: Workload, nodes: int, tau: float) -> ValueFunction:
        """The table in the unit of that workload's states; `ValueDoesNotFit` if it says nothing about it."""
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
        return _Fitted(self.contents, self.gamma, factor, drifted=found > 0)

    def save(self, url: str, name: str, *, secret: Secret, **settings: Any) -> str:
        """Sign it and put it into the store; its key there."""
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
        with_store = storage.open(url, **settings)
        try:
            with_store.put(key, pack(parts, key=key, secret=secret, meta=meta))
        finally:
            with_store.close()
        return key

    @classmethod
    def load(cls, url: str, name: str, *, secret: Secret, **settings: Any) -> Self:
        """From the store. Only what describes it is read now; values of a node count when they are first needed."""
        return cls.read(storage.open(url, **settings), name, secret=secret)

    @classmethod
    def read(cls, store: Store, name: str, *, secret: Secret) -> Self:
        """The same from a store that is open, and has to stay so."""
        try:
            parts = StoredParts(store, _key(name), secret)
        except ObjectMissing as missing:
            raise InvalidTable(
                f"there is no value table {name!r} in {store.url}. Project one with that name."
            ) from missing
        meta = parts.meta
        if meta.get("format") != FORMAT or meta.get("kind") not in CONTENTS:
            raise InvalidTable(
                f"{name!r} is of format {meta.get('format')!r}, and {FORMAT!r} is read here. Project it again."
            )
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
class _Fitted:
    """The contents of a table times the growth of all state since it was made."""

    contents: Contents
    gamma: float
    factor: float
    drifted: bool

    def fitted(self, workload: Workload, nodes: int, tau: float) -> ValueFunction:  # noqa: ARG002 - it is
        return self

    def value(self, boundaries: Sequence[int]) -> float:
        return self.factor * self.contents.value(boundaries)

    def guide(self, nodes: int) -> Guide:
        guide = self.contents.guide(nodes, drifted=self.drifted)
        if self.factor == 1.0:
            return guide
        terms, factor = guide.terms, self.factor
        interval = None if terms.interval is None else factor * terms.interval
        grown = AdditiveTerms(factor * terms.boundary, interval, factor * terms.constant)
        return guide._replace(terms=grown, above=factor * guide.above)


def _key(name: str) -> str:
    return f"tables/{name}.table"
