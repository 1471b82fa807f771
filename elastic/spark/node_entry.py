"""The function that turns a Spark task into a node."""

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from pyspark import TaskContext

from elastic.node.process import NodeProcess
from elastic.node.spare import Spare
from elastic.node.spec import NodeSpec

_log = logging.getLogger(__name__)


class StartFailed(NamedTuple):
    """The result of a node that could not start, in place of the reason why it left."""

    why: str


def host_node(spec: NodeSpec, _partition: Iterable[object]) -> Iterator[str | StartFailed]:
    """Run the node until the driver ends it, and yield the reason why it left; a spare becomes a node first, or leaves.

    Spark retries a task whose process died. A retry would be a second life of one incarnation, so it ends at once: the
    driver starts another incarnation instead.
    """
    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        return iter([f"{spec.incarnation} was lost; the driver replaces it, so Spark's retry of it ends"])
    # The process that forked this one: the executor's daemon, or the executor.
    spec = replace(spec, executor=str(os.getppid()))
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        if not spec.node:
            spare = Spare(spec)
            if (named := spare.wait()) is None:
                return iter([str(spare.left)])
            spec = named
        return iter([NodeProcess(spec).run()])
    except Exception as error:  # noqa: BLE001 - an operator's open() may raise anything, and the driver reports it
        _log.exception("%s cannot start", spec.node or "a spare")
        return iter([StartFailed(f"{type(error).__name__}: {error}")])
