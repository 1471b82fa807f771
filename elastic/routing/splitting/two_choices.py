"""Partial key grouping: every row goes to the less loaded of two workers (paper 001)."""

import numpy as np

from elastic.errors import InvalidJob
from elastic.routing.compiled_loops import as_read_only, load_compiled
from elastic.routing.splitting.pair_split import split_pairs
from elastic.routing.splitting.targets import Hashes, Numbers, Targets


def choose_targets(hashes: Hashes, targets: Targets, loads: Numbers) -> Numbers:
    """Return the target of each row: that of its two choices whose worker has less load, the first one on a tie.

    `hashes` are 64-bit hashes of keys, signed or not. `loads` has one integer per worker: rows that the caller has sent
    to it so far. It is changed in place, each row counting for the rows behind it, and the caller keeps it from call to
    call; `loads >>= 1` now and then lets it forget. Calls with parts of a batch give the same targets as one call.

    Without numba the same choices are divided by `split_pairs`, chunk by chunk: loads are as even, single rows differ.
    """
    check_loads(loads, targets)
    compiled = load_compiled("splitting.compiled_choices", "route_rows")
    if compiled is None:
        return split_pairs(hashes, targets, loads)
    chosen = np.empty(len(hashes), np.int64)
    compiled(as_read_only(hashes.view(np.uint64)), np.uint64(targets.seed), targets.arrays, loads, chosen)
    return chosen


def check_loads(loads: Numbers, targets: Targets) -> None:
    if loads.shape != (targets.workers,) or loads.dtype != np.int64:
        raise InvalidJob(
            f"{loads.dtype} loads of shape {loads.shape} are not those of {targets.workers} workers. "
            f"Use np.zeros({targets.workers}, np.int64)."
        )
