"""Whether everything was right: every batch that was reported, and in the end every count that is kept."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import elastic
from examples.frequent_patterns.audit import Audit, difference
from examples.frequent_patterns.board import Change
from examples.frequent_patterns.pipeline import DETECTOR


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


def prove(job: elastic.Job, audit: Audit, changes: Sequence[Change], told: Callable[[int], None]) -> Proof:
    """Mine all windows again, in plain Python; `told` hears how many batches are done."""
    for done, change in enumerate(changes, 1):
        audit.look(change)
        told(done)
    applied = job.status().applied_batch + 1
    if applied != audit.batches:
        audit.wrong.append(f"{applied} batches were applied, {audit.batches} reported")
    expected = {" ".join(pattern): count for pattern, count in audit.window().items()}
    kept = {row["pattern"]: row["texts"] for row in job.state_table(DETECTOR).collect() if row["texts"]}
    if kept != expected:
        audit.wrong.append(f"counts at the end: {difference(kept, expected)}")
    return Proof(audit.batches, audit.batches * audit.per_batch, len(expected), audit.wrong)
