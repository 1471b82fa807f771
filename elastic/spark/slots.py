"""Task slots: how many tasks Spark runs at a time, and whether the nodes of a job leave enough of them to its senders.

Every node holds a slot for as long as it runs. If nodes held all of them, no batch would ever run again and nothing
would fail. So a request that would take too many slots is refused before it starts anything.
"""

import re
import time
from collections.abc import Callable

from pyspark import SparkContext

from elastic.errors import TooFewSlots
from elastic.settings import Settings

_LOCAL = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")
_DEFAULT_EXECUTORS, _DEFAULT_EXECUTOR_CORES = "2", "1"  # Spark's defaults on YARN and Kubernetes
_POLL_SECONDS = 0.2

Conf = Callable[[str], str | None]


def check_slots(
    context: SparkContext, nodes: int, settings: Settings, *, other_slots: int = 0, wait_seconds: float = 0.0
) -> None:
    """Raise `TooFewSlots` if Spark cannot run `nodes` and the job's spares beside what other jobs have (`other_slots`).

    `sender_slots` must stay free. Executors of a standalone cluster get `wait_seconds` to register. Where slots cannot
    be counted the check passes.
    """
    needed = nodes + settings.spares + other_slots + settings.sender_slots
    deadline = time.monotonic() + wait_seconds
    while True:
        slots = settings.task_slots or count_slots(context)
        if slots is None or slots >= needed:
            return
        if time.monotonic() >= deadline or not _may_register_more(context, needed):
            raise TooFewSlots(nodes, slots, needed, context.master or "", settings.spares)
        time.sleep(_POLL_SECONDS)


def count_slots(context: SparkContext) -> int | None:
    """Return how many tasks the application can run at a time, None where there is no such number."""
    processors = int(context._jvm.java.lang.Runtime.getRuntime().availableProcessors())  # type: ignore[union-attr] # noqa: SLF001
    return compute_slots(context.master or "", context.getConf().get, processors, _count_registered_slots(context))


def compute_slots(master: str, conf: Conf, processors: int, registered: int) -> int | None:
    """Return the number of task slots that a master and a configuration provide.

    `registered` is the number of slots of the executors that are registered now. With dynamic allocation `maxExecutors`
    is the limit; without it, or without `spark.executor.cores`, there is no number and the result is None.
    """
    cpus = _cpus_per_task(conf)
    if match := _LOCAL.fullmatch(master):
        return (processors if match[1] == "*" else int(match[1] or 1)) // cpus
    if match := _LOCAL_CLUSTER.fullmatch(master):
        return int(match[1]) * (int(match[2]) // cpus)
    if (conf("spark.dynamicAllocation.enabled") or "false").lower() == "true":
        executors, cores = conf("spark.dynamicAllocation.maxExecutors"), conf("spark.executor.cores")
    elif _is_standalone(master):
        return registered
    else:
        executors = conf("spark.executor.instances") or _DEFAULT_EXECUTORS
        cores = conf("spark.executor.cores") or _DEFAULT_EXECUTOR_CORES
    if executors is None or cores is None:
        return None
    return max(int(executors) * (int(cores) // cpus), registered)


def _count_registered_slots(context: SparkContext) -> int:
    """Return the task slots of all registered executors; Spark's status store lists them even without a UI."""
    executors = context._jsc.sc().statusStore().executorList(True)  # noqa: SLF001 - PySpark does not offer it
    return sum(int(executors.apply(index).maxTasks()) for index in range(executors.size()))


def _may_register_more(context: SparkContext, needed: int) -> bool:
    """Return whether more executors of a standalone cluster may register, up to `spark.cores.max`."""
    conf = context.getConf()
    max_cores = conf.get("spark.cores.max")
    return _is_standalone(context.master or "") and (
        max_cores is None or int(max_cores) // _cpus_per_task(conf.get) >= needed
    )


def _is_standalone(master: str) -> bool:
    return master.startswith("spark://")


def _cpus_per_task(conf: Conf) -> int:
    return int(conf("spark.task.cpus") or 1)
