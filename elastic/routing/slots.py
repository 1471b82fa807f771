"""The numbers of a job's units of state: one for every task of every stage.

All stages of a job share one number of tasks and one assignment, and one input log, which is indexed by slot. So a slot
names a unit across the whole job: `slot = stage * SLOTS_PER_STAGE + task`.
"""

from collections.abc import Iterable

SLOTS_PER_STAGE = 1 << 20  # a job has at most that many tasks


def slot_of(stage: int, task: int) -> int:
    return stage * SLOTS_PER_STAGE + task


def stage_of(slot: int) -> int:
    return slot // SLOTS_PER_STAGE


def task_of_slot(slot: int) -> int:
    return slot % SLOTS_PER_STAGE


def runs(slots: Iterable[int]) -> list[list[int]]:
    """Ascending slots as runs of neighbours, [first, last + 1): an interval of tasks is one, whatever its length."""
    found: list[list[int]] = []
    for slot in slots:
        if found and found[-1][1] == slot:
            found[-1][1] = slot + 1
        else:
            found.append([slot, slot + 1])
    return found
