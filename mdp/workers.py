"""The port through which a projection distributes its work, and an implementation with threads."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol, TypeVar

from mdp.progress import ignore_progress

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers(Protocol):
    """Processes or threads that share one array store."""

    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        on_done: Callable[[int], None] = ignore_progress,
    ) -> list[Result]:
        """Apply the function; results are in the order of the items. `on_done` gets the number of completed items.

        The function and its closure are sent to every worker once, however many items there are.
        """
        ...


class LocalWorkers:
    """Threads of this process; the compiled loops release the GIL."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or os.cpu_count() or 1

    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        on_done: Callable[[int], None] = ignore_progress,
    ) -> list[Result]:
        with ThreadPoolExecutor(self._threads) as pool:
            futures = [pool.submit(function, item) for item in items]
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    future.result()
                    on_done(done)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return [future.result() for future in futures]
