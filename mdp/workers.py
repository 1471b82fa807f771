"""Who computes: the port through which a projection hands out its work, and the one that needs no cluster."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def ignored(_done: int) -> None:
    """For whoever does not want to know how far it is."""


class Workers(Protocol):
    """Some processes or threads that all see the same shelf."""

    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        on_done: Callable[[int], None] = ignored,
    ) -> list[Result]:
        """The results in the order of the items; `on_done` hears now and then how many items are done.

        What the function carries is sent to every worker once, however many items there are.
        """
        ...


class Here:
    """Threads of this process: the compiled loops let each other run."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or os.cpu_count() or 1

    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        on_done: Callable[[int], None] = ignored,
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
