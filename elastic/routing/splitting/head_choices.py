"""More than two choices for the heaviest keys: W-Choices and D-Choices (Nasir et al., ICDE 2016).

Two workers cannot carry a key with more than 2 / W of all rows. Keys with at least 1 / (5 W), the *head*, are few;
their rows go to the least loaded of all workers, or of d. All other keys have two choices.
"""

import math

import numpy as np
import numpy.typing as npt

from elastic.routing.compiled_loops import as_read_only, load_compiled
from elastic.routing.splitting.pair_split import split_with_heads
from elastic.routing.splitting.space_saving import SpaceSaving
from elastic.routing.splitting.targets import Hashes, Numbers, Targets
from elastic.routing.splitting.two_choices import check_loads

_HEADS_PER_WORKER = 5  # Theorem 4.1 of paper 001: two choices suffice while no key has more than 1 / (5 W)
_COUNTERS_PER_HEAD = 4  # so that the error of a count is at most a quarter of the threshold
_FEWEST_COUNTERS = 1_000  # fewer would be taken over so often that counting is slower
TOLERANCE = 1e-4  # imbalance that D-Choices accepts, as in its paper


def head_share(workers: int) -> float:
    """Return the share of all rows from which on a key belongs to the head."""
    return 1 / (_HEADS_PER_WORKER * workers)


def create_sketch(workers: int) -> SpaceSaving:
    """Return a sketch with enough counters to find the head for this number of workers."""
    return SpaceSaving(max(_COUNTERS_PER_HEAD * _HEADS_PER_WORKER * workers, _FEWEST_COUNTERS))


def choose_targets_with_heads(
    hashes: Hashes, targets: Targets, loads: Numbers, sketch: SpaceSaving, share: float | None = None
) -> Numbers:
    """Return the target of each row by W-Choices: rows of the head go to the least loaded worker, others to one of two.

    `loads` and `sketch` are changed in place, and the caller keeps them from call to call; `sketch.halve()` forgets as
    `loads >>= 1` does. `share` is that from which on a key is in the head, by default `head_share(W)`. A head key uses
    one target per worker.

    Without numba heads are found, and all rows divided, chunk by chunk with NumPy.
    """
    check_loads(loads, targets)
    share = head_share(targets.workers) if share is None else share
    routed = route_with_heads(hashes, targets, loads, sketch, share, 0)
    return split_with_heads(hashes, targets, loads, sketch, share) if routed is None else routed


def route_with_heads(
    hashes: Hashes, targets: Targets, loads: Numbers, sketch: SpaceSaving, share: float, choices: int
) -> Numbers | None:
    """Route with the compiled loop: a key of the head has `choices` workers, or all for 0. None without numba."""
    compiled = load_compiled("splitting.compiled_heads", "route_rows")
    if compiled is None:
        return None
    chosen = np.empty(len(hashes), np.int64)
    compiled(
        as_read_only(hashes.view(np.uint64)),
        share,
        choices,
        np.uint64(targets.seed),
        targets.arrays,
        loads,
        sketch.open_arrays(),
        chosen,
    )
    return chosen


def count_choices(head: npt.NDArray[np.float64], workers: int, tolerance: float = TOLERANCE) -> int:
    """Return how many choices D-Choices gives to the head, whose keys have these shares of all rows, descending.

    The smallest d from p_1 W on such that no set of workers gets more rows than it should: for every h, with
    b = W - W (1 - 1 / W)^(h d) the workers that the h heaviest keys use,

        p_1 + ... + p_h + (b / W)^d (p_(h + 1) + ... + p_H) + (b / W)^2 (1 - p_1 - ... - p_H) <= b (1 / W + tolerance)

    for all keys p_1 to p_H of the head. W if there is none: then every worker is a choice. O(H) per d.
    """
    if not len(head):
        return 2
    taken = np.cumsum(head)
    numbers = np.arange(1, len(head) + 1)
    for d in range(max(2, math.ceil(head[0] * workers)), workers):
        used = 1 - (1 - 1 / workers) ** (numbers * d)
        rows = taken + used**d * (taken[-1] - taken) + used**2 * (1 - taken[-1])
        if (rows <= used * (1 + tolerance * workers)).all():
            return d
    return workers
