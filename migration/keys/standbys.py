"""Standbys of keys: where copies are, where a second hash leads to, and what a standby works."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from migration.errors import InvalidInput, InvalidStandbys
from migration.keys.loads import Hashes, KeyLoads, Nodes, is_amount

DEFAULT_STANDBY_SHARE = 0.9  # of the owner's work for the same key; 0.82 to 0.97 were measured for counting
NOWHERE = -1

NodeRows = NDArray[np.int32]  # a row for every key, a column for every standby; NOWHERE where there is none


@dataclass(frozen=True, eq=False)
class KeyStandbys:
    """The standbys of every key: `home` where the second hash leads to, `current` where copies are now.

    `share` is the work of a standby as a share of what the key's own node does. The number of nodes in a row of `home`
    is the key's number of standbys; `current` may have fewer, or more after the service level was lowered.

    Invariant: both have K rows of node indices, or NOWHERE; no row names a node twice. `check_fits` checks what depends
    on the loads: no key has a standby on its own node. 4 bytes a key and standby.
    """

    home: NodeRows
    current: NodeRows
    share: float = DEFAULT_STANDBY_SHARE

    def __init__(
        self,
        home: Iterable[Sequence[int]] | NodeRows,
        current: Iterable[Sequence[int]] | NodeRows | None = None,
        share: float = DEFAULT_STANDBY_SHARE,
    ) -> None:
        """All standbys are at home if `current` is None."""
        homes = _check_rows("home", home)
        rows = homes if current is None else _check_rows("current", current)
        if len(rows) != len(homes):
            raise InvalidStandbys(f"home has {len(homes)} rows and current {len(rows)}. Give one row for every key.")
        if not is_amount(share):
            raise InvalidInput(
                f"share is {share!r}. Give the work of a standby as a share of its key's, a number >= 0."
            )
        columns = max(homes.shape[1], rows.shape[1])
        for name, found in (("home", homes), ("current", rows)):
            object.__setattr__(self, name, _freeze(widen_rows(found, columns)))
        object.__setattr__(self, "share", float(share))

    @classmethod
    def hashed(
        cls,
        loads: KeyLoads,
        nodes: int,
        count: int | Sequence[int] | Nodes = 1,
        share: float = DEFAULT_STANDBY_SHARE,
        *,
        seed: int = 0,
    ) -> Self:
        """Standbys at home, by `hash_standbys`; `count` may be a number for every key, by its service level."""
        return cls(hash_standbys(loads.hashes, loads.home, nodes, count, seed=seed), share=share)

    @property
    def keys(self) -> int:
        return len(self.home)

    @property
    def counts(self) -> Nodes:
        """The number of standbys that every key should have, dn(k)."""
        return np.asarray((self.home != NOWHERE).sum(axis=1), np.int32)

    def check_fits(self, loads: KeyLoads, nodes: int) -> None:
        """Raise unless there is a row for every key, every node exists and none is the key's own."""
        if self.keys != loads.keys:
            raise InvalidStandbys(
                f"there are standbys of {self.keys} keys and loads of {loads.keys}. Give one row each."
            )
        for name, rows, own in (("home", self.home, loads.home), ("current", self.current, loads.current)):
            if rows.size and rows.max() >= nodes:
                key = int(np.argmax((rows >= nodes).any(axis=1)))
                raise InvalidStandbys(f"a {name} standby of key {key} is on node {rows[key].max()} of {nodes}.")
            together = (rows == own[:, None]).any(axis=1)
            if together.any():
                key = int(np.argmax(together))
                raise InvalidStandbys(
                    f"the {name} standby of key {key} is on node {own[key]}, its own. Put it on another node."
                )


def hash_standbys(
    hashes: Hashes, home: Nodes, nodes: int, count: int | Sequence[int] | Nodes = 1, *, seed: int = 0
) -> NodeRows:
    """The homes of standbys by a second hash: independent of the first one, on nodes that differ from each other.

    The standbys of a node's keys are then spread evenly over all other nodes, so that each of them can take over a
    part of its load. With the next node, (h(k) + 1) mod n, one node would have to take over all of it.
    """
    counts = np.broadcast_to(np.asarray(count, np.int32), (len(hashes),))
    most = int(counts.max(initial=0))
    if counts.min(initial=0) < 0 or most >= max(nodes, 1):
        raise InvalidStandbys(f"{most} standbys beside the key's own node need {most + 1} nodes, not {nodes}.")
    rows = np.full((len(hashes), most), NOWHERE, np.int32)
    taken = [np.asarray(home, np.int32)]
    for column in range(most):
        place = (_mix(hashes.view(np.uint64), seed * 64 + column) % np.uint64(nodes - 1 - column)).astype(np.int32)
        for other in np.sort(np.stack(taken), axis=0):  # skip the nodes that the key has already, in ascending order
            place += place >= other
        taken.append(place)
        rows[:, column] = np.where(counts > column, place, NOWHERE)
    return rows


def _mix(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """A hash that is independent of the number itself and of other seeds (the finaliser of murmur3)."""
    with np.errstate(over="ignore"):
        mixed = numbers ^ np.uint64((seed + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        return mixed ^ (mixed >> np.uint64(33))


def no_standbys(keys: int) -> NodeRows:
    """Rows without a standby for so many keys."""
    return _freeze(np.empty((keys, 0), np.int32))


def _check_rows(name: str, values: Any) -> NodeRows:
    try:
        given = values if isinstance(values, np.ndarray) else np.array([list(row) for row in values])
        if given.ndim == 2 and not given.size:
            given = given.astype(np.int32)
        if given.ndim != 2 or given.dtype.kind not in "iu":
            raise InvalidStandbys(f"{name} has shape {given.shape}. Give a row of node indices for every key.")
        rows = given.astype(np.int32)
    except (TypeError, ValueError) as cause:
        if isinstance(cause, InvalidStandbys):
            raise
        raise InvalidStandbys(f"{name} is no table of node indices: {cause}. Give a row for every key.") from cause
    if rows.size and (rows.min() < NOWHERE or not np.array_equal(rows, given)):
        raise InvalidStandbys(f"{name} names node {given.min()}. Give indices from 0, or -1 for no standby.")
    ordered = np.sort(rows, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NOWHERE)).any(axis=1)
    if twice.any():
        raise InvalidStandbys(f"{name} of key {int(np.argmax(twice))} names a node twice. Name each once.")
    return rows


def widen_rows(rows: NodeRows, columns: int) -> NodeRows:
    """A copy of rows with so many columns."""
    wide = np.full((len(rows), columns), NOWHERE, np.int32)
    wide[:, : rows.shape[1]] = rows
    return wide


def _freeze(rows: NodeRows) -> NodeRows:
    rows.setflags(write=False)
    return rows
