"""Verification of a job: the results of every batch, and every count in its final state."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

import elastic
from examples.frequent_patterns.audit import Audit, difference
from examples.frequent_patterns.board import Change, Patterns
from examples.frequent_patterns.pipeline import DETECTOR

_CHUNK = 16  # batches per process, which also needs the window before them


class Proof(NamedTuple):
    """The comparison with a miner that counts from scratch."""

    batches: int
    texts: int
    counts: int  # patterns of the last window, frequent or not
    wrong: Sequence[str]

    @property
    def holds(self) -> bool:
        return self.batches > 0 and self.counts > 0 and not self.wrong

    def __str__(self) -> str:
        if self.holds:
            return (
                f"exact: the patterns after each of {self.batches:,} batches, and all {self.counts:,} final counts, "
                f"equal those of a miner that counts the same {self.texts:,} texts from scratch"
            )
        return f"WRONG in {len(self.wrong)} places: " + "; ".join(self.wrong[:3] or ["nothing was compared"])


def prove(
    job: elastic.SparkJob,
    audit: Audit,
    changes: Sequence[Change],
    on_progress: Callable[[int], None],
    processes: int = os.cpu_count() or 1,
) -> Proof:
    """Mine all windows again in plain Python and compare; `on_progress` gets the number of batches done."""
    for number, (change, expected) in enumerate(
        zip(changes, _mine_in_processes(audit, len(changes), processes), strict=True)
    ):
        audit.compare(change, number, expected)
        on_progress(number + 1)
    published = job.status().published_batch + 1
    if published != len(changes):
        audit.wrong.append(f"{published} batches were published, but {len(changes)} reported")
    expected_counts = _counts(audit, len(changes))
    kept = {row["pattern"]: row["texts"] for row in job.state_table(DETECTOR).collect() if row["texts"]}
    if kept != expected_counts:
        audit.wrong.append(f"final counts: {difference(kept, expected_counts)}")
    return Proof(len(changes), len(changes) * audit.per_batch, len(expected_counts), audit.wrong)


def _mine_in_processes(audit: Audit, batches: int, processes: int) -> Iterator[Patterns]:
    """Yield the patterns after every batch, computed by processes that know only the texts."""
    firsts = range(0, batches, _CHUNK)
    with ExitStack() as stack:
        mapped: Callable[..., Iterator[list[Patterns]]] = map
        if processes > 1:
            # Spawned, not forked: this process has threads, whose locks a fork would copy.
            fresh = multiprocessing.get_context("spawn")
            mapped = stack.enter_context(ProcessPoolExecutor(processes, fresh)).map
        stops = [min(first + _CHUNK, batches) for first in firsts]
        for found in mapped(_patterns_after, [audit] * len(stops), firsts, stops):
            yield from found


def _patterns_after(audit: Audit, first: int, stop: int) -> list[Patterns]:
    """Return the patterns after each batch from `first` to `stop` - 1."""
    miner = _audit_before(audit, first)
    found: list[Patterns] = [miner.expect_next() for _ in range(miner.batches, stop)]
    return found[-(stop - first) :]


def _counts(audit: Audit, batches: int) -> dict[str, int]:
    """Return the number of texts with each pattern in the last window."""
    miner = _audit_before(audit, batches - 1)
    while miner.batches < batches:
        miner.expect_next()
    return {" ".join(pattern): count for pattern, count in miner.window().items()}


def _audit_before(audit: Audit, batch: int) -> Audit:
    """Return a new audit that has the whole window when it reaches this batch."""
    return Audit(audit.texts, audit.per_batch, audit.mining, batches=max(0, batch - audit.mining.span.amount + 1))
