"""Keys that are to live in other units: from the hash of a key to a task, in one stage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.groupings import Grouping, Groupings, Hashes, TableGrouping

HOME = -1  # in the place of a task: the key returns to the task of its hash


class KeyOrders(NamedTuple):
    """Which keys leave a unit, and the number of the unit that each of them goes to."""

    hashes: Hashes
    targets: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeyTargets:
    """Keys of a stage by hash, and the task that each becomes a guest of; `HOME` removes its entry from the table.

    A key whose target is the task of its own hash goes home too: an entry would lead where the hash does. A protected
    key has an entry nevertheless, and goes home to the guests of that task.

    Invariant: the hashes are distinct, and there is one task from `HOME` on for each.
    """

    stage: int
    hashes: Hashes
    tasks: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in ("hashes", "tasks"):
            column = np.array(getattr(self, name), np.int64)
            column.setflags(write=False)
            object.__setattr__(self, name, column)
        if len(self.hashes) != len(self.tasks) or len(np.unique(self.hashes)) != len(self.hashes):
            raise InvalidJob(f"{len(self.hashes)} keys and {len(self.tasks)} tasks. Name each key once, with one task.")
        if len(self.tasks) and self.tasks.min() < HOME:
            raise InvalidJob(f"there is no task {self.tasks.min()}. Count tasks from 0.")

    @classmethod
    def from_mapping(cls, stage: int, tasks: Mapping[int, int | None]) -> Self:
        """Return the targets of keys by hash; None sends a key home."""
        targets = [HOME if task is None else task for task in tasks.values()]
        return cls(stage, np.array(list(tasks), np.int64), np.array(targets, np.int64))

    @classmethod
    def of_displaced(cls, groupings: Groupings, limit: int) -> Self | None:
        """Return where keys belong that a change of the protected keys displaced, at most `limit`; None if none is."""
        for stage, grouping in enumerate(groupings.by_stage):
            if isinstance(grouping, TableGrouping):
                displaced = grouping.find_displaced(groupings.tasks)[:limit]
                if len(displaced):
                    return cls(stage, displaced, np.full(len(displaced), HOME, np.int64))
        return None

    def regroup(self, groupings: Groupings) -> tuple[Grouping, ...]:
        """Return the groupings by stage after the keys have moved; `InvalidJob` if the stage has no key table."""
        before = groupings[self.stage]
        if not isinstance(before, TableGrouping):
            raise InvalidJob(
                f"stage {self.stage} is grouped by {before.kind}, so its keys cannot move. "
                'Run it with grouping="table".'
            )
        after = before.move(self.hashes, self.tasks, groupings.tasks)
        return (*groupings.by_stage[: self.stage], after, *groupings.by_stage[self.stage + 1 :])

    def orders(self, groupings: Groupings) -> dict[int, KeyOrders]:
        """Return, by the number of the unit that they are in now, the keys that change their unit."""
        after = Groupings(groupings.tasks, self.regroup(groupings))
        sources = groupings.unit_numbers(self.hashes, self.stage).astype(np.int64)
        targets = after.unit_numbers(self.hashes, self.stage).astype(np.int64)
        return {
            int(source): KeyOrders(self.hashes[leaving], targets[leaving])
            for source in np.unique(sources[sources != targets])
            for leaving in [(sources == source) & (sources != targets)]
        }

    def __len__(self) -> int:
        return len(self.hashes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyTargets):
            return NotImplemented
        same = self.stage == other.stage and np.array_equal(self.hashes, other.hashes)
        return same and np.array_equal(self.tasks, other.tasks)

    def __hash__(self) -> int:
        return hash((self.stage, self.hashes.tobytes(), self.tasks.tobytes()))

    def __repr__(self) -> str:
        return f"KeyTargets({len(self)} keys of stage {self.stage})"
