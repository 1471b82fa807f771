"""Nodes as Spark jobs: one job with one task each, started from a driver thread under a job group of its own."""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pyspark import InheritableThread, SparkContext

from elastic.runtime.controller.nodes import Ended
from elastic.runtime.jvm import spark_calls
from elastic.runtime.node.entry import StartFailed, host_node
from elastic.runtime.node.specification import NodeSpecification

_log = logging.getLogger(__name__)
_REASON_LENGTH = 600  # what Spark has to say beyond that, it says in its own log
_SOON_SECONDS = 5.0  # an incarnation that lived shorter probably had no chance
_FIRST_REST_SECONDS, _LONGEST_REST_SECONDS = 0.25, 10.0
_MEANINGS = {
    "Python worker exited unexpectedly": "its process died",
    "ExecutorLostFailure": "its executor was lost",
    "cancelled": "its Spark job was cancelled",
    "SparkContext was shut down": "Spark was stopped",
}


def rest_seconds(short_lives: int) -> float:
    """Before the next incarnation: none after one that died soon, which may be chance, then more and more.

    Where every one of them must die, say because a package is missing on the executors, Spark is not kept busy with it.
    """
    return 0.0 if short_lives < 2 else min(_FIRST_REST_SECONDS * 2 ** (short_lives - 2), _LONGEST_REST_SECONDS)


class End(NamedTuple):
    """How an incarnation ended: whether it died rather than left, why, and whether that is an error of its own."""

    died: bool
    why: str
    failed: bool = False


class _Launch:
    """One incarnation on its way, or at work."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.over = threading.Event()


class SparkLauncher:
    """Lets Spark find a place for every incarnation, wherever it has a free task slot."""

    def __init__(self, context: SparkContext, template: NodeSpecification) -> None:
        self._context = context
        self._template = template
        self._launches: dict[str, _Launch] = {}  # by incarnation
        self._short_lives: dict[str, int] = {}  # by node: how many of the latest died soon
        self._lock = threading.Lock()

    def start(self, node: str, incarnation: str, controller: str, ended: Ended) -> None:
        spec = replace(self._template, node=node, incarnation=incarnation, controller=controller)
        launch = _Launch()
        with self._lock:
            self._launches[incarnation] = launch
            rest = rest_seconds(self._short_lives.get(node, 0))

        def run() -> None:
            began = time.monotonic() + rest
            end = End(False, "it was cancelled") if launch.cancelled.wait(rest) else self._run(spec)
            with self._lock:
                soon = end.died and time.monotonic() - began < _SOON_SECONDS
                self._short_lives[node] = self._short_lives.get(node, 0) + 1 if soon else 0
                self._launches.pop(incarnation, None)
            launch.over.set()
            ended(node, incarnation, end.why, end.failed)

        with spark_calls():
            InheritableThread(target=run, name=f"job-of-{incarnation}", daemon=True).start()

    def cancel(self, incarnation: str) -> None:
        with self._lock:
            launch = self._launches.get(incarnation)
        if launch is not None:
            launch.cancelled.set()
            _cancel_jobs(self._context, _group(incarnation))

    def wait(self, incarnations: Sequence[str], seconds: float) -> list[str]:
        with self._lock:
            running = {name: self._launches[name].over for name in incarnations if name in self._launches}
        ends = time.monotonic() + seconds
        return [name for name, over in running.items() if not over.wait(max(0.0, ends - time.monotonic()))]

    def _run(self, spec: NodeSpecification) -> End:
        try:
            self._context.setJobGroup(_group(spec.incarnation), f"{spec.job}: {spec.node}", interruptOnCancel=False)
            told = self._context.parallelize([0], 1).mapPartitions(partial(host_node, spec)).collect()
        except Exception as error:  # noqa: BLE001 - Spark raises many types; whatever it is, the incarnation is over
            known = known_reason(str(error))
            return End(True, known or own_reason(error), failed=known is None)
        [left] = told
        return End(True, left.why, failed=True) if isinstance(left, StartFailed) else End(False, str(left))


def _group(incarnation: str) -> str:
    return f"spark-elastic {incarnation}"


def _cancel_jobs(context: SparkContext, group: str) -> None:
    """Cancel the job of a group, also if Spark hears of it only after this; the task's thread is not interrupted.

    A task that waits for a slot leaves the queue. A task that runs loses its Python worker about two seconds later
    (`spark.python.task.killTimeout`). Interrupting it instead while its worker is being created would make Spark
    restart the daemon that forks all workers, and every healthy node would die with it.
    """
    context._jsc.sc().cancelJobGroupAndFutureJobs(group)  # noqa: SLF001 - PySpark does not offer it


def known_reason(text: str) -> str | None:
    """What happened to the process, if Spark's text says that something outside of it did."""
    return next((meaning for known, meaning in _MEANINGS.items() if known in text), None)


def own_reason(error: BaseException) -> str:
    """The innermost reason: a Python error without its traceback, else Spark's text without the JVM's stack."""
    text = str(error).partition("\n\tat ")[0].strip()
    if "Traceback (most recent call last)" in text:
        lines = text.splitlines()
        last_frame = max(number for number, line in enumerate(lines) if line.startswith("  ") or "Traceback" in line)
        if innermost := "\n".join(lines[last_frame + 1 :]).strip():
            return innermost[:_REASON_LENGTH]
    text = text.rpartition("most recent failure: ")[2].strip()
    return f"{type(error).__name__}: {text[:_REASON_LENGTH]}"
