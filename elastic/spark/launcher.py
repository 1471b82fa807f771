"""Nodes as Spark jobs: one job with one task each, started from a driver thread under a job group of its own."""

import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pyspark import InheritableThread, SparkContext

from elastic.driver.launcher import Ended
from elastic.node.spec import NodeSpec
from elastic.spark.failures import detect_lost_jvm, find_external_cause, find_own_cause
from elastic.spark.node_entry import StartFailed, host_node

_SHORT_LIFE_SECONDS = 5.0  # an incarnation that died sooner probably failed to start
_FIRST_BACKOFF_SECONDS, _LONGEST_BACKOFF_SECONDS = 0.25, 10.0


def backoff_seconds(short_lives: int) -> float:
    """Return the pause before the next incarnation of a node, after `short_lives` that died soon.

    None after the first, which may be chance, then longer and longer: where every incarnation must die, for example
    because the executors lack a package, the launcher does not keep Spark busy.
    """
    return 0.0 if short_lives < 2 else min(_FIRST_BACKOFF_SECONDS * 2 ** (short_lives - 2), _LONGEST_BACKOFF_SECONDS)


class NodeExit(NamedTuple):
    """How an incarnation ended: whether it died rather than left, why, and whether the cause is an error of its own."""

    died: bool
    why: str
    failed: bool = False


class _Launch:
    """One incarnation that is starting or running."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.ended = threading.Event()


class SparkLauncher:
    """Starts incarnations as Spark jobs; Spark places each wherever it has a free task slot."""

    def __init__(self, context: SparkContext, template: NodeSpec) -> None:
        self._context = context
        self._template = template
        # Spark also cancels later jobs of a cancelled group, and another job of this application may have
        # incarnations of the same names.
        self._group_prefix = f"spark-elastic {secrets.token_hex(4)}"
        self._launches: dict[str, _Launch] = {}  # by incarnation
        self._short_lives: dict[str, int] = {}  # by node: how many of the latest incarnations died soon
        self._lock = threading.Lock()

    def start(self, node: str, incarnation: str, driver: str, ended: Ended) -> None:
        spec = replace(self._template, node=node, incarnation=incarnation, driver=driver)
        launch = _Launch()
        with self._lock:
            self._launches[incarnation] = launch
            pause = backoff_seconds(self._short_lives.get(node, 0))

        def run() -> None:
            began = time.monotonic() + pause
            end = NodeExit(False, "it was cancelled") if launch.cancelled.wait(pause) else self._run(spec)
            with self._lock:
                was_short = end.died and time.monotonic() - began < _SHORT_LIFE_SECONDS
                self._short_lives[node] = self._short_lives.get(node, 0) + 1 if was_short else 0
                self._launches.pop(incarnation, None)
            launch.ended.set()
            ended(node, incarnation, end.why, end.failed)

        with detect_lost_jvm():
            InheritableThread(target=run, name=f"job-of-{incarnation}", daemon=True).start()

    def cancel(self, incarnation: str) -> None:
        with self._lock:
            launch = self._launches.get(incarnation)
        if launch is not None:
            launch.cancelled.set()
            _cancel_jobs(self._context, self._job_group(incarnation))

    def wait(self, incarnations: Sequence[str], seconds: float) -> list[str]:
        with self._lock:
            running = {name: self._launches[name].ended for name in incarnations if name in self._launches}
        deadline = time.monotonic() + seconds
        return [name for name, ended in running.items() if not ended.wait(max(0.0, deadline - time.monotonic()))]

    def _run(self, spec: NodeSpec) -> NodeExit:
        try:
            group, description = self._job_group(spec.incarnation), f"{spec.job}: {spec.node or 'spare'}"
            self._context.setJobGroup(group, description, interruptOnCancel=False)
            [result] = self._context.parallelize([0], 1).mapPartitions(partial(host_node, spec)).collect()
        except Exception as error:  # noqa: BLE001 - Spark raises many types; with any of them the incarnation has ended
            external = find_external_cause(str(error))
            return NodeExit(True, external or find_own_cause(error), failed=external is None)
        if isinstance(result, StartFailed):
            return NodeExit(True, result.why, failed=True)
        return NodeExit(False, str(result))

    def _job_group(self, incarnation: str) -> str:
        return f"{self._group_prefix} {incarnation}"


def _cancel_jobs(context: SparkContext, group: str) -> None:
    """Cancel the job of a group, also one that Spark submits later, without interrupting the task's thread.

    A task that waits for a slot leaves the queue. A running task loses its Python worker about two seconds later
    (`spark.python.task.killTimeout`). An interrupt while its worker is being created would make Spark restart the
    daemon that forks all workers, and every healthy node would die with it.
    """
    context._jsc.sc().cancelJobGroupAndFutureJobs(group)  # noqa: SLF001 - PySpark does not offer it
