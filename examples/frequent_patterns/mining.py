"""The parameters of the mining: which patterns, how frequent, over which window."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from math import comb

from elastic.errors import InvalidSetting
from examples.frequent_patterns.span import Span
from examples.frequent_patterns.words import STOP_WORDS, Vocabulary

_MAX_PATTERNS = 10_000  # of one text; more, and a few long texts would dominate a batch


@dataclass(frozen=True)
class Mining:
    """Patterns of up to `length` words that at least `threshold` texts of the window have.

    Invariant: no text has more than 10,000 patterns; a text of w words has the sum of C(w, k) for k up to `length`.
    State depends on all parameters, so a restart must not change them: `version` makes the engine refuse that.
    """

    threshold: int
    length: int
    span: Span
    vocabulary: Vocabulary

    def __init__(
        self,
        threshold: int = 20,
        length: int = 3,
        window: str | Span = "20 batches",
        max_words: int = 12,
        stop_words: Iterable[str] = STOP_WORDS,
        dictionary: Iterable[str] | None = None,
    ) -> None:
        for name, value in (("threshold", threshold), ("length", length)):
            if value < 1:
                raise InvalidSetting(name, value, "expected a positive integer")
        object.__setattr__(self, "threshold", threshold)
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "span", Span.parse(window) if isinstance(window, str) else window)
        object.__setattr__(self, "vocabulary", Vocabulary(max_words, stop_words, dictionary))
        patterns = sum(comb(max_words, size) for size in range(1, length + 1))
        if patterns > _MAX_PATTERNS:
            raise InvalidSetting(
                "length",
                length,
                f"a text of {max_words} words has {patterns:,} such patterns, above {_MAX_PATTERNS:,}",
            )

    @property
    def version(self) -> str:
        """A version that differs for different parameters."""
        dictionary = self.vocabulary.dictionary
        words = " ".join(
            [*sorted(self.vocabulary.stop_words), "|", *(["*"] if dictionary is None else sorted(dictionary))]
        )
        digest = hashlib.sha256(words.encode()).hexdigest()[:12]
        return f"1,{self.threshold},{self.length},{self.span},{self.vocabulary.max_words},{digest}"
