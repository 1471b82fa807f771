"""The loop of `partial`, compiled by numba; imported only if numba is installed."""

import numpy as np
import numpy.typing as npt

from migration.compiling import compiled


@compiled
def choose_nodes(
    first: npt.NDArray[np.int64],
    second: npt.NDArray[np.int64],
    is_head: npt.NDArray[np.bool_],
    loads: npt.NDArray[np.float64],
    chosen: npt.NDArray[np.int64],
) -> None:
    """Place rows one after the other on the less loaded node of two, rows of the head on the least loaded of all."""
    for row in range(len(first)):
        node = first[row]
        if is_head[row]:
            node = 0
            for other in range(1, len(loads)):
                if loads[other] < loads[node]:
                    node = other
        elif loads[second[row]] < loads[node]:
            node = second[row]
        loads[node] += 1.0
        chosen[row] = node
