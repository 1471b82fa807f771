"""The executors of a Spark session as workers of a projection."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from uuid import uuid4

from pyspark.sql import SparkSession

from mdp.progress import ignore_progress

Item = TypeVar("Item")
Result = TypeVar("Result")

_TASKS_PER_CORE = 8  # so that cores that finish early get more work, and progress is visible
_POLL_SECONDS = 0.2


class SparkWorkers:
    """Runs the items of a call as tasks of one Spark job.

    The function is broadcast: a Python worker of an executor reads it once, whatever it carries. A call that is
    interrupted cancels its job.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext

    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        on_done: Callable[[int], None] = ignore_progress,
    ) -> list[Result]:
        if not items:
            return []
        context, group = self._context, f"projection-{uuid4()}"
        carried = context.broadcast(function)
        done = context.accumulator(0)

        def run_item(item: Item) -> Result:
            result = carried.value(item)
            done.add(1)
            return result

        def run() -> list[Result]:
            context.setJobGroup(group, "projected migration costs", interruptOnCancel=True)
            slices = min(len(items), _TASKS_PER_CORE * context.defaultParallelism)
            results: list[Result] = context.parallelize(items, slices).map(run_item).collect()
            return results

        over = threading.Event()
        try:
            with ThreadPoolExecutor(1) as thread:
                future = thread.submit(run)
                future.add_done_callback(lambda _: over.set())
                try:
                    while not over.wait(_POLL_SECONDS):
                        on_done(done.value)
                except BaseException:
                    context.cancelJobGroup(group)
                    raise
                return future.result()
        finally:
            carried.destroy()
