"""Workloads: the work and the state size of every task."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from migration.errors import InvalidWorkload
from migration.model.documents import parse_json

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Workload:
    """Work `w_j` and state size `|s_j|` of tasks 0..m-1, with their prefix sums.

    Invariant: both are finite, non-negative, of one length m >= 1, and read-only.
    `work_prefix[x]` is the work of tasks 0..x-1, so an interval [a, x) weighs `work_prefix[x] - work_prefix[a]`.
    Units are the caller's (seconds and bytes in the engine); sums of whole numbers below 2**53 are exact.
    """

    work: Floats
    state: Floats
    work_prefix: Floats = field(init=False, repr=False)
    state_prefix: Floats = field(init=False, repr=False)

    def __init__(self, work: Iterable[float], state: Iterable[float] | None = None) -> None:
        """State sizes default to the work, as for counters whose state grows with their records."""
        weights = _check_values("work", work)
        sizes = weights if state is None else _check_values("state", state)
        if len(weights) != len(sizes):
            raise InvalidWorkload(
                f"work has {len(weights)} tasks and state has {len(sizes)}. Give both one value for every task."
            )
        for name, values in (("work", weights), ("state", sizes)):
            prefix = np.zeros(len(values) + 1)
            with np.errstate(over="ignore"):  # an overflow is refused below, by name
                np.cumsum(values, out=prefix[1:])
            if not np.isfinite(prefix[-1]):
                raise InvalidWorkload(f"the sum of {name} overflows. Use a larger unit.")
            object.__setattr__(self, name, _freeze(values))
            object.__setattr__(self, f"{name}_prefix", _freeze(prefix))

    @classmethod
    def uniform(cls, tasks: int, work: float = 1.0, state: float = 1.0) -> Self:
        """All tasks with the same work and state."""
        return cls(np.full(tasks, work), np.full(tasks, state))

    @property
    def tasks(self) -> int:
        return len(self.work)

    @property
    def total_work(self) -> float:
        return float(self.work_prefix[-1])

    @property
    def total_state(self) -> float:
        return float(self.state_prefix[-1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        return np.array_equal(self.work, other.work) and np.array_equal(self.state, other.state)

    def __hash__(self) -> int:
        return hash((self.work.tobytes(), self.state.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilding through the constructor keeps the invariant (and the read-only flag) across pickling.
        return type(self), (self.work, self.state)

    def __str__(self) -> str:
        return f"{self.tasks} tasks, work {self.total_work:g}, state {self.total_state:g}"

    def to_dict(self) -> dict[str, Any]:
        return {"work": self.work.tolist(), "state": self.state.tolist()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        try:
            return cls(document["work"], document["state"])
        except (KeyError, TypeError) as cause:
            raise InvalidWorkload(
                "a workload document needs the lists 'work' and 'state'. Write it with to_json()."
            ) from cause

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls.from_dict(parse_json(text, InvalidWorkload))


def _check_values(name: str, values: Iterable[float]) -> Floats:
    try:
        if not isinstance(values, np.ndarray):
            values = list(values)
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise InvalidWorkload(f"{name} is not a list of numbers: {cause}. Give one number for every task.") from cause
    if array.ndim != 1 or not len(array):
        raise InvalidWorkload(f"{name} has shape {array.shape}. Give one number for every task, and at least one task.")
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        task = int(np.argmax(bad))
        raise InvalidWorkload(f"{name} of task {task} is {array[task]}. Give finite numbers that are not negative.")
    return array


def _freeze(array: Floats) -> Floats:
    array.setflags(write=False)
    return array
