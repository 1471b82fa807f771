"""A job that is fed batch by batch, and scales meanwhile; here in threads of this process."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

import elastic
from elastic.local import LocalNetwork
from elastic.local.run import TableSource
from elastic.operators import Stage

NODES, TASKS = 3, 16
MORE_NODES, FEWER_NODES = 5, 2  # after a third of the batches, and after two thirds


class Size(NamedTuple):
    """The size of a run: batches, rows of each, and the seed of the generated stream."""

    batches: int = 24
    rows: int = 2_000
    seed: int = 0


class Report(NamedTuple):
    """The outcome of an application: figures to show, and how its answer is wrong; None if it is right."""

    name: str
    figures: dict[str, str]
    verdict: str
    difference: str | None = None


@dataclass
class Feed:
    """A running job and its source. The job has 3 nodes, 5 after a third of the batches, 2 after two thirds."""

    job: elastic.Job
    batches: int
    append: Callable[[pa.Table], None]
    _sent: int = 0

    def send(self, rows: pa.Table) -> None:
        """Send a batch, and wait until its results are published; migrations continue meanwhile."""
        nodes = {self.batches // 3: MORE_NODES, 2 * self.batches // 3: FEWER_NODES}.get(self._sent)
        if nodes is not None:
            self.job.scale(nodes, queue=True)
        self.append(rows)
        self._sent += 1
        self.job.process_all_available()


class StartJob(Protocol):
    """Starts a job with `NODES` nodes, and stops it at the end of the block."""

    def __call__(
        self, stages: Sequence[Stage], key: str | Sequence[str], schema: pa.Schema, size: Size
    ) -> AbstractContextManager[Feed]: ...


@contextmanager
def start_in_threads(
    stages: Sequence[Stage], key: str | Sequence[str], schema: pa.Schema, size: Size
) -> Iterator[Feed]:
    """Start a job in threads of this process, without Spark and Java."""
    network = LocalNetwork()
    source = TableSource(network)
    with elastic.local_run(
        source, key=key, operator=stages, schema=schema, network=network, nodes=NODES, tasks=TASKS
    ) as job:
        yield Feed(job, size.batches, source.append)


def draw_words(size: Size, batch: int, words: int = 2_000, skew: float = 1.1) -> pa.Table:
    """Return the words of a batch, with Zipf frequencies; the same number always gives the same words."""
    shares = np.arange(1, words + 1) ** -skew
    drawn = np.random.default_rng([size.seed, batch]).choice(words, size.rows, p=shares / shares.sum())
    return pa.table({"word": [f"w{number}" for number in drawn.tolist()]})
