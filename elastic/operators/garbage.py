"""Python's garbage collector while an operator is called for many keys."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collector() -> Iterator[None]:
    """Disable the garbage collector inside the block; it finds what the block left afterwards.

    It traverses the state of all keys again and again while rows and results of a batch are created, and takes half
    of the time of a step with 100,000 keys. What a batch leaves in cycles is as little as the batch. A collector that
    is disabled stays so; of blocks in several threads the first to end lets it go on.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
