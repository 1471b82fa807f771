"""Reduces a text to its relevant words, in canonical form."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastic.errors import InvalidSetting

# Common words without meaning for the topic of a text, without their apostrophes.
STOP_WORDS = frozenset(Path(__file__).with_name("stop_words.txt").read_text().split())
_NOISE = r"https?://\S+|@\w+|&#?\w+;"  # links, mentions and HTML entities
_APOSTROPHES = "['\u2019]"  # dropped, so that "don't" stays one word
_BETWEEN = r"[^\p{L}\p{N}]+"
_SHORTEST = 2  # letters; a single one is usually a fragment


@dataclass(frozen=True)
class Vocabulary:
    """The relevant words of a text: its first `max_words` different words, without stop words.

    With a dictionary, only its words are relevant. A text of w words has C(w, k) patterns of k words: 12 words have 298
    of up to three, 24 have 2,324; so the bound on words bounds the work of one text.
    """

    max_words: int = 12
    stop_words: frozenset[str] = STOP_WORDS
    dictionary: frozenset[str] | None = None

    def __init__(
        self,
        max_words: int = 12,
        stop_words: Iterable[str] = STOP_WORDS,
        dictionary: Iterable[str] | None = None,
    ) -> None:
        if max_words < 1:
            raise InvalidSetting("max_words", max_words, "expected a positive integer")
        object.__setattr__(self, "max_words", max_words)
        object.__setattr__(self, "stop_words", frozenset(stop_words))
        object.__setattr__(self, "dictionary", None if dictionary is None else frozenset(dictionary))

    def to_canonical(self, texts: Any) -> pa.Array:
        """Return the relevant words of every text, each once, ascending, separated by one space; null without any.

        Some 200 thousand texts per second on one core.
        """
        lists = _split(texts)
        owners, words = pc.list_parent_indices(lists), pc.list_flatten(lists)
        counts = self._is_relevant(words)
        owners, words = owners.filter(counts), words.filter(counts).dictionary_encode()
        chosen = _select(owners.to_numpy(), _ranks(words), self.max_words)
        sizes = np.bincount(owners.to_numpy()[chosen], minlength=len(lists))
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
        joined = pc.binary_join(
            pa.ListArray.from_arrays(offsets, words.take(pa.array(chosen)).dictionary_decode()), " "
        )
        return pc.if_else(pa.array(sizes > 0), joined, pa.scalar(None, pa.string()))

    def _is_relevant(self, words: pa.Array) -> pa.Array:
        """Return a mask of the relevant words."""
        counts = pc.and_(
            pc.greater_equal(pc.utf8_length(words), _SHORTEST),
            pc.invert(pc.is_in(words, pa.array(sorted(self.stop_words), pa.string()))),
        )
        if self.dictionary is None:
            return counts
        return pc.and_(counts, pc.is_in(words, pa.array(sorted(self.dictionary), pa.string())))


def _split(texts: Any) -> pa.ListArray:
    """Split every text into words, in order; some are empty."""
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    plain = pc.utf8_lower(pc.fill_null(array.cast(pa.string()), ""))
    for pattern, instead in ((_NOISE, " "), (_APOSTROPHES, ""), (_BETWEEN, " ")):
        plain = pc.replace_substring_regex(plain, pattern, instead)
    return pc.split_pattern(plain, " ")


def _ranks(words: pa.DictionaryArray) -> NDArray[np.int64]:
    """Return the rank of every word among all different words."""
    order = pc.sort_indices(words.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    found: NDArray[np.int64] = ranks[words.indices.to_numpy()]
    return found


def _select(owners: NDArray[np.int64], ranks: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the positions of the first `most` different words of every text, in order of rank."""
    mentions = owners.astype(np.int64) * (ranks.max(initial=0) + 1) + ranks
    _, first = np.unique(mentions, return_index=True)
    first.sort()
    beginnings = np.flatnonzero(np.diff(owners[first], prepend=-1))
    places = np.arange(len(first)) - np.repeat(beginnings, np.diff(beginnings, append=len(first)))
    first = first[places < most]
    return first[np.argsort(mentions[first], kind="stable")]
