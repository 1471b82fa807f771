"""Maximal frequent patterns the obvious way: count everything, compare everything. What the pipeline must equal."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import combinations

from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.words import Vocabulary


def words_of(text: str, vocabulary: Vocabulary) -> list[str]:
    """The words of a text that count, in ascending order."""
    plain = (
        re.sub(r"https?://\S+|@\w+|&#?\w+;", " ", text.lower(), flags=re.ASCII).replace("'", "").replace("\u2019", "")
    )
    words = [word for word in re.findall(r"[^\W_]+", plain) if len(word) > 1 and word not in vocabulary.stop_words]
    known = [word for word in words if vocabulary.dictionary is None or word in vocabulary.dictionary]
    return sorted(list(dict.fromkeys(known))[: vocabulary.most_words])


def patterns_of(texts: Iterable[str], mining: Mining) -> Counter[tuple[str, ...]]:
    """How many of the texts have each pattern."""
    counts: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        words = words_of(text, mining.vocabulary)
        for size in range(1, mining.length + 1):
            counts.update(combinations(words, size))
    return counts


def maximal(counts: Counter[tuple[str, ...]], threshold: int) -> dict[str, int]:
    """Frequent patterns that no other frequent pattern contains, each with its count."""
    frequent = {pattern: count for pattern, count in counts.items() if count >= threshold}
    contained = {
        part for pattern in frequent for size in range(1, len(pattern)) for part in combinations(pattern, size)
    }
    return {" ".join(pattern): count for pattern, count in frequent.items() if pattern not in contained}


def mined(texts: Iterable[str], mining: Mining) -> dict[str, int]:
    """The maximal frequent patterns of these texts."""
    return maximal(patterns_of(texts, mining), mining.threshold)
