"""Verification of a job: its patterns after every batch are compared with those of the miner over the same window."""

from collections import Counter, deque
from dataclasses import dataclass, field

import numpy as np

from elastic.errors import InvalidSetting
from examples.frequent_patterns.board import Change, Patterns
from examples.frequent_patterns.miner import count_patterns, find_maximal
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.texts import Texts


@dataclass
class Audit:
    """Checks the batches of a job on numbered texts, in order.

    The window must be one of batches, so that its texts are known without asking the job. `wrong` describes the
    difference for every wrong batch.
    """

    texts: Texts
    per_batch: int
    mining: Mining
    batches: int = 0
    max_patterns: int = 0
    wrong: list[str] = field(default_factory=list)
    _counts: deque[Counter[tuple[str, ...]]] = field(init=False)

    def __post_init__(self) -> None:
        if not self.mining.span.in_batches:
            raise InvalidSetting(
                "window", str(self.mining.span), "use a window of batches, whose texts are known beforehand"
            )
        self._counts = deque(maxlen=self.mining.span.amount)

    def expect_next(self) -> dict[str, int]:
        """Return the patterns of the miner after the next batch."""
        numbers = np.arange(self.per_batch) + self.batches * self.per_batch
        self.batches += 1
        self._counts.append(count_patterns(self.texts.take(numbers).to_pylist(), self.mining))
        return find_maximal(self.window(), self.mining.threshold)

    def check(self, change: Change) -> bool:
        """Return whether the patterns after the next batch are right."""
        expected = self.expect_next()
        self.max_patterns = max(self.max_patterns, len(expected))
        return self.compare(change, self.batches - 1, expected)

    def compare(self, change: Change, batch: int, expected: Patterns) -> bool:
        """Return whether this change equals the expected patterns after that batch; record the difference."""
        if change.batch != batch:
            self.wrong.append(f"batch {change.batch} was reported instead of {batch}")
        if change.patterns != expected:
            self.wrong.append(f"batch {change.batch}: {difference(change.patterns, expected)}")
        return change.batch == batch and change.patterns == expected

    def window(self) -> Counter[tuple[str, ...]]:
        """Return the number of texts with each pattern in the window after the last batch."""
        found: Counter[tuple[str, ...]] = Counter()
        for counts in self._counts:
            found.update(counts)
        return found


def difference(got: Patterns, expected: Patterns) -> str:
    """Describe how patterns differ, with the first few of each kind."""
    kinds = {
        "missing": sorted(expected.keys() - got.keys()),
        "unexpected": sorted(got.keys() - expected.keys()),
        "wrong count": sorted(name for name in got.keys() & expected.keys() if got[name] != expected[name]),
    }
    parts = [
        f"{len(names)} {kind}: " + ", ".join(f"{name!r} {got.get(name)} for {expected.get(name)}" for name in names[:3])
        for kind, names in kinds.items()
        if names
    ]
    return "; ".join(parts) or "nothing"
