"""Whether a job is right: its patterns after every batch, next to those of the miner over the same window."""

from collections import Counter, deque
from dataclasses import dataclass, field

import numpy as np

from elastic.errors import InvalidSetting
from examples.frequent_patterns.board import Change, Patterns
from examples.frequent_patterns.miner import maximal, patterns_of
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.texts import Texts


@dataclass
class Audit:
    """Looks at the batches of a job on numbered texts, one after the other from the first.

    Which texts are in the window after a batch is known without asking the job, so its window must be one of batches.
    `wrong` says of every batch that differs how it does.
    """

    texts: Texts
    per_batch: int
    mining: Mining
    batches: int = 0
    most_patterns: int = 0
    wrong: list[str] = field(default_factory=list)
    _counts: deque[Counter[tuple[str, ...]]] = field(init=False)

    def __post_init__(self) -> None:
        if not self.mining.span.in_batches:
            raise InvalidSetting("window", str(self.mining.span), "only a window of batches can be known beforehand")
        self._counts = deque(maxlen=self.mining.span.amount)

    def expected_next(self) -> dict[str, int]:
        """What the miner finds in the window after the next batch."""
        numbers = np.arange(self.per_batch) + self.batches * self.per_batch
        self.batches += 1
        self._counts.append(patterns_of(self.texts.numbered(numbers).to_pylist(), self.mining))
        return maximal(self.window(), self.mining.threshold)

    def look(self, change: Change) -> bool:
        """Whether the patterns after this batch, the next one, are right."""
        expected = self.expected_next()
        self.most_patterns = max(self.most_patterns, len(expected))
        return self.compare(change, self.batches - 1, expected)

    def compare(self, change: Change, batch: int, expected: Patterns) -> bool:
        """Whether this is what should have been reported after that batch."""
        if change.batch != batch:
            self.wrong.append(f"batch {change.batch} was reported instead of {batch}")
        if change.patterns != expected:
            self.wrong.append(f"batch {change.batch}: {difference(change.patterns, expected)}")
        return change.batch == batch and change.patterns == expected

    def window(self) -> Counter[tuple[str, ...]]:
        """How many texts of the window after the last batch have each pattern."""
        found: Counter[tuple[str, ...]] = Counter()
        for counts in self._counts:
            found.update(counts)
        return found


def difference(got: Patterns, expected: Patterns) -> str:
    """How patterns differ, for people to read; the first few of each kind."""
    kinds = {
        "missing": sorted(expected.keys() - got.keys()),
        "too many": sorted(got.keys() - expected.keys()),
        "other count": sorted(name for name in got.keys() & expected.keys() if got[name] != expected[name]),
    }
    told = [
        f"{len(names)} {kind}: " + ", ".join(f"{name!r} {got.get(name)} for {expected.get(name)}" for name in names[:3])
        for kind, names in kinds.items()
        if names
    ]
    return "; ".join(told) or "nothing"
