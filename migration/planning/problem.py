"""A planning problem with checked arguments (who may stay, who joins, how many remain, the cap), and its answer."""

import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from migration.errors import InvalidAssignment, InvalidInput, InvalidWorkload, UnknownNode
from migration.kernels import Ints
from migration.model.ownership import Ownership
from migration.model.standbys import Standbys, most_followed
from migration.model.workload import Floats, Workload
from migration.planning import balance

# Of its owner's work for the same task; 0.82 to 0.97 were measured for counting.
DEFAULT_STANDBY_SHARE = 0.9

_NUMBERS = (int, float, np.integer, np.floating)


class Problem(NamedTuple):
    """Find an owner for every task among `staying` (at most `node_count` of them) and `joining` nodes.

    Invariant: `node_count` >= 1 nodes remain; `joining` fills up what `staying` cannot; names are distinct.
    If `staying` has more names than `node_count`, the strategy chooses the nodes that leave. `cap` bounds the work of
    the tasks that a node owns. `standbys` are the copies that exist, None if the caller has no standbys.
    """

    current: Ownership
    workload: Workload
    staying: tuple[str, ...]
    joining: tuple[str, ...]
    node_count: int
    tau: float
    cap: float
    allow_idle: bool = False
    standbys: Standbys | None = None
    standby_count: int = 0
    standby_share: float = 0.0

    @classmethod
    def of(
        cls,
        current: Ownership,
        nodes: int | Iterable[str],
        workload: Workload,
        tau: float,
        *,
        leaving: Iterable[str] = (),
        new_nodes: Sequence[str] = (),
        allow_idle: bool = False,
        standbys: Standbys | Mapping[int, Iterable[str]] | None = None,
        standby_count: int | None = None,
        standby_share: float = DEFAULT_STANDBY_SHARE,
    ) -> Self:
        if not isinstance(current, Ownership) or not isinstance(workload, Workload):
            raise InvalidInput(
                f"current is {type(current).__name__} and workload is {type(workload).__name__}. "
                "Give an Assignment (or ScatteredAssignment) and a Workload."
            )
        if current.tasks != workload.tasks:
            raise InvalidWorkload(
                f"the assignment has {current.tasks} tasks and the workload {workload.tasks}. "
                "Measure the operator that is planned for."
            )
        if isinstance(nodes, str):
            raise InvalidInput(f"nodes is the string {nodes!r}. Give a count, or a list of the names that remain.")
        if isinstance(nodes, Iterable):
            staying, count = _remaining_by_name(current, nodes, leaving, new_nodes)
        else:
            staying, count = _remaining_by_count(current, nodes, leaving)
        if count > workload.tasks and not allow_idle:
            raise InvalidInput(
                f"{count} nodes are more than {workload.tasks} tasks. "
                f"Use at most {workload.tasks} nodes, or pass allow_idle=True."
            )
        asked_tau = check_tau(tau)
        copies, copy_count = _check_standbys(current, standbys, standby_count)
        return cls(
            current,
            workload,
            staying,
            _name_joining(current, count - len(staying), new_nodes),
            count,
            asked_tau,
            balance.cap(workload, count, asked_tau),
            allow_idle,
            copies,
            copy_count,
            0.0 if copies is None else check_share(standby_share),
        )

    def relax(self) -> Self:
        """The same problem under the smallest feasible cap."""
        return self._replace(cap=balance.smallest_cap(self.workload, self.node_count))

    @property
    def load_cap(self) -> float:
        """The most work a node may carry if standbys count, too: each of those that it follows is within the cap."""
        return self.cap * (1 + self.standby_share * most_followed(self.standby_count, self.node_count))

    @property
    def is_contiguous(self) -> bool:
        """Whether every node owns one interval; a migration that was cancelled half-way leaves some with several."""
        runs = self.current.runs
        return len({run.node for run in runs}) == len(runs)

    def check_contiguous(self) -> None:
        if not self.is_contiguous:
            raise InvalidAssignment("the current assignment is not contiguous. Plan and carry out one step first.")

    def old_boundaries(self) -> Ints:
        """Boundaries of the runs owned now."""
        return np.array([run.start for run in self.current.runs] + [self.workload.tasks])

    def keepers(self) -> list[str | None]:
        """The node that may keep a part of each current run: its owner, unless that leaves or has a heavier run.

        So a node keeps the tasks that are both in its new interval and in its heaviest run; with intervals that is all.
        """
        runs, state, staying = self.current.runs, self.workload.state_prefix, set(self.staying)
        if self.is_contiguous:
            return [run.node if run.node in staying else None for run in runs]
        heaviest: dict[str, int] = {}
        for place, run in enumerate(runs):
            rival = runs[heaviest.setdefault(run.node, place)]
            if (state[run.stop] - state[run.start], run.stop - run.start) > (
                state[rival.stop] - state[rival.start],
                rival.stop - rival.start,
            ):
                heaviest[run.node] = place
        return [
            run.node if run.node in staying and heaviest[run.node] == place else None for place, run in enumerate(runs)
        ]

    def gain_prefix(self, count_empty_state: bool = True) -> Floats:
        """Prefix sums of the state that stays if its task stays: 0 for tasks without a keeper.

        If all of that state is empty, tasks are counted instead of bytes (with `count_empty_state`), so that empty
        state does not move without need.
        """
        keepers = self.keepers()
        if None not in keepers and self.workload.total_state > 0:
            return self.workload.state_prefix
        may_stay = np.zeros(self.workload.tasks)
        for run, keeper in zip(self.current.runs, keepers, strict=True):
            may_stay[run.start : run.stop] = keeper is not None
        gain = may_stay * self.workload.state
        prefix = np.zeros(self.workload.tasks + 1)
        np.cumsum(may_stay if count_empty_state and not gain.any() else gain, out=prefix[1:])
        prefix.setflags(write=False)
        return prefix


class Proposal(NamedTuple):
    """The answer of a strategy: a target, why it was chosen, and the discounted cost foreseen after it, if any."""

    target: Ownership
    reason: str
    future_cost: float | None = None


def check_tau(tau: float) -> float:
    """Return tau as a float; raise for NaN, infinity and negative values."""
    if isinstance(tau, bool) or not isinstance(tau, _NUMBERS) or not math.isfinite(tau) or tau < 0:
        raise InvalidInput(
            f"tau is {tau!r}. Give the allowed overload as a number >= 0; 0.2 allows 20 % above the mean."
        )
    return float(tau)


def check_share(share: float) -> float:
    """Return the share as a float; raise for NaN, infinity and negative values."""
    if isinstance(share, bool) or not isinstance(share, _NUMBERS) or not (0 <= share < math.inf):
        raise InvalidInput(
            f"standby_share is {share!r}. Give the work of a standby as a share of its owner's, a number >= 0."
        )
    return float(share)


def _check_standbys(
    current: Ownership, standbys: Standbys | Mapping[int, Iterable[str]] | None, count: int | None
) -> tuple[Standbys | None, int]:
    """The copies that exist, and how many there should be: as many as there are, if the caller does not say."""
    if count is not None and (isinstance(count, bool) or not hasattr(count, "__index__") or operator.index(count) < 0):
        raise InvalidInput(f"standby_count is {count!r}. Give a whole number >= 0.")
    if standbys is None and not count:
        return None, 0
    copies = standbys if isinstance(standbys, Standbys) else Standbys.of(current.tasks, standbys or {})
    copies.check_apart(current)
    return copies, copies.most if count is None else operator.index(count)


def check_count(nodes: object, what: str = "nodes") -> int:
    """Return a whole number of at least one; raise for anything else."""
    try:
        count = operator.index(nodes)  # type: ignore[arg-type]
    except TypeError:
        count = 0
    if isinstance(nodes, bool) or count < 1:
        raise InvalidInput(f"{what} is {nodes!r}. Give a whole number >= 1.")
    return count


def _remaining_by_count(current: Ownership, nodes: object, leaving: Iterable[str]) -> tuple[tuple[str, ...], int]:
    count = check_count(nodes)
    leavers = _check_known(current, leaving, "Name nodes that exist, to remove them.")
    if not leavers:
        return current.nodes, count
    return tuple(node for node in current.nodes if node not in leavers), count


def _remaining_by_name(
    current: Ownership, nodes: Iterable[str], leaving: Iterable[str], new_nodes: Sequence[str]
) -> tuple[tuple[str, ...], int]:
    remaining = _check_known(current, nodes, "To add a node, name it in new_nodes.")
    contradicted = remaining & _check_known(current, leaving, "Name nodes that exist, to remove them.")
    if contradicted:
        raise InvalidInput(f"{sorted(contradicted)} are named both to remain and to leave. Name each in one list only.")
    if not remaining and not new_nodes:
        raise InvalidInput("no node is named to remain. Name at least one.")
    return tuple(node for node in current.nodes if node in remaining), len(remaining) + len(new_nodes)


def _check_known(current: Ownership, names: Iterable[str], advice: str) -> set[str]:
    named = set(names)
    unknown = named.difference(current.nodes)
    if unknown:
        raise UnknownNode(min(unknown, key=str), current.nodes, advice)
    return named


def _name_joining(current: Ownership, needed: int, new_nodes: Sequence[str]) -> tuple[str, ...]:
    if not new_nodes:
        return _fresh_names(current.nodes, needed)
    joining = tuple(new_nodes)
    if len(set(joining)) != len(joining) or set(joining) & set(current.nodes):
        raise InvalidInput(f"new_nodes {joining} are not all new. Give every new node its own name.")
    if len(joining) != max(needed, 0):
        raise InvalidInput(
            f"{len(joining)} new nodes are named but {max(needed, 0)} join. Name exactly those that join, or none."
        )
    return joining


def _fresh_names(taken: Sequence[str], needed: int) -> tuple[str, ...]:
    """Names node-k, counting on from the current nodes and skipping names in use."""
    if needed <= 0:
        return ()
    used = set(taken)
    candidates = (f"node-{number}" for number in itertools.count(len(taken) + 1))
    return tuple(itertools.islice((name for name in candidates if name not in used), needed))
