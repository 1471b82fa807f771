"""The numbers of a job's units of state: one for every task of every stage.

All stages of a job share one number of tasks and one assignment, and one input log, which is indexed by slot. So a slot
names a unit across the whole job: `slot = stage * SLOTS_PER_STAGE + task`.
"""

SLOTS_PER_STAGE = 1 << 20  # a job has at most that many tasks


def slot_of(stage: int, task: int) -> int:
    return stage * SLOTS_PER_STAGE + task


def stage_of(slot: int) -> int:
    return slot // SLOTS_PER_STAGE


def task_of_slot(slot: int) -> int:
    return slot % SLOTS_PER_STAGE
