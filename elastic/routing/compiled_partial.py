"""The loop of `partial`, compiled by numba."""

from typing import Any

import numba  # type: ignore[import-untyped]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def choose_nodes(first: Any, second: Any, is_head: Any, loads: Any, chosen: Any) -> None:
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
