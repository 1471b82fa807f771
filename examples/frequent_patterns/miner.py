"""Maximal frequent patterns by brute force: counts and compares everything. The oracle of the pipeline."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import combinations

from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.words import Vocabulary


def split_words(text: str, vocabulary: Vocabulary) -> list[str]:
    """Return the relevant words of a text, in ascending order."""
    plain = (
        re.sub(r"https?://\S+|@\w+|&#?\w+;", " ", text.lower(), flags=re.ASCII).replace("'", "").replace("\u2019", "")
    )
    words = [word for word in re.findall(r"[^\W_]+", plain) if len(word) > 1 and word not in vocabulary.stop_words]
    known = [word for word in words if vocabulary.dictionary is None or word in vocabulary.dictionary]
    return sorted(list(dict.fromkeys(known))[: vocabulary.max_words])


def count_patterns(texts: Iterable[str], mining: Mining) -> Counter[tuple[str, ...]]:
    """Return the number of texts with each pattern."""
    counts: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        words = split_words(text, mining.vocabulary)
        for size in range(1, mining.length + 1):
            counts.update(combinations(words, size))
    return counts


def find_maximal(counts: Counter[tuple[str, ...]], threshold: int) -> dict[str, int]:
    """Return the frequent patterns that no other frequent pattern contains, each with its count."""
    frequent = {pattern: count for pattern, count in counts.items() if count >= threshold}
    contained = {
        part for pattern in frequent for size in range(1, len(pattern)) for part in combinations(pattern, size)
    }
    return {" ".join(pattern): count for pattern, count in frequent.items() if pattern not in contained}


def mine(texts: Iterable[str], mining: Mining) -> dict[str, int]:
    """Return the maximal frequent patterns of these texts."""
    return find_maximal(count_patterns(texts, mining), mining.threshold)
