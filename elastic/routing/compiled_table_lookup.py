"""The loop of `table_lookup`, compiled by numba; imported only if numba is installed."""

import numpy as np
import numpy.typing as npt

from migration.compiling import compiled


@compiled
def group_rows(
    entries: npt.NDArray[np.int64],
    entry_tasks: npt.NDArray[np.int64],
    is_followed: npt.NDArray[np.bool_],
    starts: npt.NDArray[np.int32],
    hashes: npt.NDArray[np.int64],
    tasks: int,
    first_task: int,
    first_guest: int,
    numbers: npt.NDArray[np.int64],
) -> None:
    """Fill `numbers` with the unit of each row."""
    mask = len(starts) - 1
    is_power = tasks & (tasks - 1) == 0
    for row in range(len(hashes)):
        key_hash = hashes[row]
        entry = starts[key_hash & mask]
        while entries[entry] != key_hash and is_followed[entry]:
            entry += 1
        if entries[entry] == key_hash:
            numbers[row] = first_guest + entry_tasks[entry]
        elif is_power:
            numbers[row] = first_task + (key_hash & (tasks - 1))
        else:
            numbers[row] = first_task + key_hash % tasks
