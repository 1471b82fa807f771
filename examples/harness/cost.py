"""A fixed cost of processing a row."""

import time

_PER_SECOND = 1_000_000


def spend(rows: int, microseconds: float) -> None:
    """Wait as long as these rows cost.

    It sleeps and uses no processor, so several nodes on one processor take their rows at the same time, as nodes on
    processors of their own would. A sleep ends some 60 microseconds late.
    """
    if rows and microseconds:
        time.sleep(rows * microseconds / _PER_SECOND)
