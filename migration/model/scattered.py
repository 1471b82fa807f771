"""Assignments without intervals: the result of consistent hashing, or of a cancelled migration."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar, Self

from migration.errors import InvalidAssignment
from migration.model.assignment import Assignment
from migration.model.moves import Move
from migration.model.ownership import Ownership, Run, check_coverage, check_names, read_runs


@dataclass(frozen=True)
class ScatteredAssignment(Ownership):
    """Task j belongs to `nodes[owner_indices[j]]`. Invariant: every index is valid. O(m) space."""

    kind: ClassVar[str] = "scattered"
    nodes: tuple[str, ...]
    owner_indices: tuple[int, ...]

    def __post_init__(self) -> None:
        nodes = check_names(self.nodes)
        if not self.owner_indices:
            raise InvalidAssignment("an assignment needs at least one task.")
        if min(self.owner_indices) < 0 or max(self.owner_indices) >= len(nodes):
            raise InvalidAssignment(f"owner indices must lie in 0..{len(nodes) - 1}. Name every owner in nodes.")
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "owner_indices", tuple(self.owner_indices))

    @classmethod
    def from_owners(cls, owners: Sequence[str], nodes: Sequence[str]) -> Self:
        """From the owner of every task; `nodes` may name idle nodes too."""
        index = {node: position for position, node in enumerate(nodes)}
        try:
            return cls(tuple(nodes), tuple(index[owner] for owner in owners))
        except KeyError as cause:
            raise InvalidAssignment(f"owner {cause.args[0]!r} is not among the nodes. Add it to nodes.") from cause

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        tasks, nodes = read_runs(document)
        ordered = check_coverage(tasks, (Run(start, stop, name) for name, runs in nodes for start, stop in runs))
        owners = [run.node for run in ordered for _ in range(run.start, run.stop)]
        return cls.from_owners(owners, [name for name, _ in nodes])

    @property
    def tasks(self) -> int:
        return len(self.owner_indices)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        runs, start = [], 0
        for index, group in groupby(self.owner_indices):
            stop = start + sum(1 for _ in group)
            runs.append(Run(start, stop, self.nodes[index]))
            start = stop
        return tuple(runs)


def ownership_from_dict(document: Mapping[str, Any]) -> Assignment | ScatteredAssignment:
    """Read what `to_dict` wrote, contiguous or scattered."""
    readers = {reader.kind: reader for reader in (Assignment, ScatteredAssignment)}
    kind = document.get("kind") if isinstance(document, Mapping) else None
    if kind not in readers:
        raise InvalidAssignment(f"{kind!r} is not a kind of assignment. Write assignments with to_json().")
    return readers[kind].from_dict(document)


def apply_moves(ownership: Ownership, moves: Iterable[Move], nodes: Sequence[str]) -> ScatteredAssignment:
    """Apply `moves` to an assignment; raise if a source does not own its task. `nodes` are the nodes afterwards."""
    owners = list(ownership.owners)
    for move in moves:
        if owners[move.task] != move.source:
            raise InvalidAssignment(
                f"task {move.task} belongs to {owners[move.task]!r}, so {move.source!r} cannot move it. "
                "Apply moves in order."
            )
        owners[move.task] = move.target
    return ScatteredAssignment.from_owners(owners, nodes)
