"""Where a Spark task becomes a node."""

import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyspark import TaskContext

from elastic.runtime.node.process import NodeProcess
from elastic.runtime.node.specification import NodeSpecification

_log = logging.getLogger(__name__)


class StartFailed(NamedTuple):
    """What a node returns in place of the reason why it left, if it never came so far."""

    why: str


def host_node(spec: NodeSpecification, _partition: Iterable[object]) -> Iterator[str | StartFailed]:
    """Be that node until it is told to leave.

    Spark runs a task again when its process dies. That would be a second life of one incarnation, so it ends at once:
    the controller starts another one instead.
    """
    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        return iter([f"{spec.incarnation} was lost; a retry by Spark is not wanted"])
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        return iter([NodeProcess(spec).run()])
    except Exception as error:  # noqa: BLE001 - an operator's open() may raise anything, and the driver should hear what
        _log.exception("%s cannot start", spec.node)
        return iter([StartFailed(f"{type(error).__name__}: {error}")])
