"""Whether everything was right: every batch that was reported, and in the end every count that is kept."""

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

_TOGETHER = 16  # batches that one process mines in one go; it needs the window before them too


class Proof(NamedTuple):
    """What was compared with the miner that counts everything, and what differs."""

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
                f"exact: the patterns after each of {self.batches:,} batches, and all {self.counts:,} counts at the "
                f"end, are those of a miner that counts the same {self.texts:,} texts from scratch"
            )
        return f"WRONG in {len(self.wrong)} places: " + "; ".join(self.wrong[:3] or ["nothing was compared"])


def prove(
    job: elastic.Job,
    audit: Audit,
    changes: Sequence[Change],
    told: Callable[[int], None],
    processes: int = os.cpu_count() or 1,
) -> Proof:
    """Mine all windows again, in plain Python, before the audit has seen any; `told` hears how many are done."""
    for number, (change, expected) in enumerate(zip(changes, _mined(audit, len(changes), processes), strict=True)):
        audit.compare(change, number, expected)
        told(number + 1)
    applied = job.status().published_batch + 1
    if applied != len(changes):
        audit.wrong.append(f"{applied} batches were applied, {len(changes)} reported")
    expected_counts = _counts(audit, len(changes))
    kept = {row["pattern"]: row["texts"] for row in job.state_table(DETECTOR).collect() if row["texts"]}
    if kept != expected_counts:
        audit.wrong.append(f"counts at the end: {difference(kept, expected_counts)}")
    return Proof(len(changes), len(changes) * audit.per_batch, len(expected_counts), audit.wrong)


def _mined(audit: Audit, batches: int, processes: int) -> Iterator[Patterns]:
    """The patterns after every batch, by processes that know the texts and nothing of the job."""
    firsts = range(0, batches, _TOGETHER)
    with ExitStack() as stack:
        mapped: Callable[..., Iterator[list[Patterns]]] = map
        if processes > 1:
            # A fresh process each: this one has threads, and a copy of it might wait for them for ever.
            fresh = multiprocessing.get_context("spawn")
            mapped = stack.enter_context(ProcessPoolExecutor(processes, fresh)).map
        stops = [min(first + _TOGETHER, batches) for first in firsts]
        for found in mapped(_patterns_after, [audit] * len(stops), firsts, stops):
            yield from found


def _patterns_after(audit: Audit, first: int, stop: int) -> list[Patterns]:
    """After the batches from `first` up to `stop`."""
    miner = _before(audit, first)
    found: list[Patterns] = [miner.expected_next() for _ in range(miner.batches, stop)]
    return found[-(stop - first) :]


def _counts(audit: Audit, batches: int) -> dict[str, int]:
    """How many texts of the last window have each pattern."""
    miner = _before(audit, batches - 1)
    while miner.batches < batches:
        miner.expected_next()
    return {" ".join(pattern): count for pattern, count in miner.window().items()}


def _before(audit: Audit, batch: int) -> Audit:
    """A new one that has the whole window when it comes to this batch."""
    return Audit(audit.texts, audit.per_batch, audit.mining, batches=max(0, batch - audit.mining.span.amount + 1))
