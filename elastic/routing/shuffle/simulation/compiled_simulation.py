"""The loop of the simulator, compiled by numba; imported only if numba is installed."""

import numpy as np
import numpy.typing as npt

from migration.compiling import compiled

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ROUND_ROBIN, GREEDY, FULL_KNOWLEDGE = range(3)


@compiled
def _choose(mode: int, row: int, now: float, ends: Floats, skips_idle: bool) -> int:
    """Return the instance in turn, or the first of those that end first."""
    if mode == ROUND_ROBIN:
        return row % len(ends)
    best = 0
    least = max(ends[0], now) if skips_idle else ends[0]
    for instance in range(1, len(ends)):
        end = max(ends[instance], now) if skips_idle else ends[instance]
        if end < least:
            best, least = instance, end
    return best


@compiled
def _estimate(row: int, instance: int, columns: Integers, frequencies: Integers, seconds: Floats) -> np.float64:
    fewest = 0
    for cell in range(1, columns.shape[1]):
        if frequencies[instance, cell, columns[row, cell]] < frequencies[instance, fewest, columns[row, fewest]]:
            fewest = cell
    return seconds[instance, fewest, columns[row, fewest]]  # type: ignore[no-any-return]


@compiled
def run_rows(
    mode: int,
    start: int,
    stop: int,
    next_message: float,
    window: int,
    skips_idle: bool,
    columns: Integers,
    arrivals: Floats,
    costs: Floats,
    slowness: Floats,
    phase_of: Integers,
    cell_frequencies: Integers,
    cell_seconds: Floats,
    completion: Floats,
    free: Floats,
    worked: Floats,
    executed: Integers,
    frequencies: Integers,
    seconds: Floats,
    instances: Integers,
    completion_of: Floats,
) -> tuple[int, int]:
    """Schedule and execute rows until a message arrives first, or an instance has ended a window.

    Returns the next row, and the instance that ended its window or -1. A row is executed when it is scheduled: what an
    instance does depends on its earlier rows only.
    """
    for row in range(start, stop):
        now = arrivals[row]
        if next_message <= now:
            return row, -1
        instance = _choose(mode, row, now, free if mode == FULL_KNOWLEDGE else completion, skips_idle)
        if mode == GREEDY:
            if skips_idle:
                completion[instance] = max(completion[instance], now)
            completion[instance] += _estimate(row, instance, columns, cell_frequencies, cell_seconds)
        spent = costs[row] * slowness[phase_of[row], instance]
        free[instance] = max(free[instance], now) + spent
        instances[row], completion_of[row] = instance, free[instance] - now
        if mode == FULL_KNOWLEDGE:
            continue
        worked[instance] += spent
        for cell in range(columns.shape[1]):
            frequencies[instance, cell, columns[row, cell]] += 1
            seconds[instance, cell, columns[row, cell]] += spent
        executed[instance] += 1
        if executed[instance] == window:
            executed[instance] = 0
            return row + 1, instance
    return stop, -1
