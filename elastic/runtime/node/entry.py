"""Where a Spark task becomes a node."""

import logging
from collections.abc import Iterable, Iterator

from pyspark import TaskContext

from elastic.runtime.node.process import NodeProcess
from elastic.runtime.node.specification import NodeSpecification


def host_node(spec: NodeSpecification, _partition: Iterable[object]) -> Iterator[str]:
    """Be that node until it is told to leave.

    Spark runs a task again when its process dies. That would be a second life of one incarnation, so it ends at once:
    the controller starts another one instead.
    """
    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        return iter([f"{spec.incarnation} was lost; a retry by Spark is not wanted"])
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    return iter([NodeProcess(spec).run()])
