"""Nodes as Spark jobs: one job with one task each, started from a driver thread under a job group of its own."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from pyspark import InheritableThread, SparkContext

from elastic.runtime.node.entry import host_node
from elastic.runtime.node.specification import NodeSpecification

_log = logging.getLogger(__name__)
_REASON_LENGTH = 300  # what Spark has to say beyond that, it says in its own log
_MEANINGS = {
    "Python worker exited unexpectedly": "its process died",
    "ExecutorLostFailure": "its executor was lost",
    "cancelled": "its Spark job was cancelled",
    "SparkContext was shut down": "Spark was stopped",
}


class SparkLauncher:
    """Lets Spark find a place for every incarnation, wherever it has a free task slot."""

    def __init__(self, context: SparkContext, template: NodeSpecification) -> None:
        self._context = context
        self._template = template
        self._over: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def start(self, node: str, incarnation: str, controller: str, ended: Callable[[str, str, str], None]) -> None:
        spec = replace(self._template, node=node, incarnation=incarnation, controller=controller)
        over = threading.Event()
        with self._lock:
            self._over[incarnation] = over

        def run() -> None:
            why = self._run(spec)
            over.set()
            with self._lock:
                self._over.pop(incarnation, None)
            ended(node, incarnation, why)

        InheritableThread(target=run, name=f"job-of-{incarnation}", daemon=True).start()

    def cancel(self, incarnation: str) -> None:
        with self._lock:
            running = incarnation in self._over
        if running:
            self._context.cancelJobGroup(_group(incarnation))

    def wait(self, incarnations: Sequence[str], seconds: float) -> list[str]:
        with self._lock:
            running = {
                incarnation: self._over[incarnation] for incarnation in incarnations if incarnation in self._over
            }
        return [incarnation for incarnation, over in running.items() if not over.wait(seconds)]

    def _run(self, spec: NodeSpecification) -> str:
        try:
            self._context.setJobGroup(_group(spec.incarnation), f"{spec.job}: {spec.node}", interruptOnCancel=True)
            told = self._context.parallelize([0], 1).mapPartitions(partial(host_node, spec)).collect()
        except Exception as error:  # noqa: BLE001 - Spark raises many types; whatever it is, the incarnation is over
            return _shortened(error)
        return str(told[0])


def _group(incarnation: str) -> str:
    return f"spark-elastic {incarnation}"


def _shortened(error: BaseException) -> str:
    """The innermost reason, without the JVM's stack and Spark's advice."""
    text = str(error).partition("\n\tat ")[0].strip()
    for known, meaning in _MEANINGS.items():
        if known in text:
            return meaning
    return f"{type(error).__name__}: {text[:_REASON_LENGTH]}"
