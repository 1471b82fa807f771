"""Numbered texts: the same number always gives the same text, so that a stream of them can be verified."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from numpy.typing import NDArray

from elastic.errors import InvalidSetting

_BLOCK = 512  # texts generated together from one seed
_SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "wo", "zu", "xa")
_WORDS = 4_000  # different words; the k-th has weight 1 / (k + 20), as in a language without stop words
_TOPIC_WORDS = (2, 5)  # range of the number of words of a topic
_TOPICS = 12  # at the same time
_TOPIC_TEXTS = 4_096  # texts after which the topics change


class Texts(Protocol):
    """A text for every number from 0 on."""

    def take(self, numbers: NDArray[np.int64]) -> pa.Array: ...


@dataclass(frozen=True)
class CsvTexts:
    """The texts of a CSV file, repeated endlessly."""

    texts: pa.Array

    @classmethod
    def read(cls, path: Path, column: str = "text") -> "CsvTexts":
        """Read the texts from a column of a CSV file with a header."""
        options = csv.ParseOptions(newlines_in_values=True)
        try:
            table = csv.read_csv(path, parse_options=options)
        except (pa.ArrowInvalid, OSError) as cause:
            raise InvalidSetting("texts", str(path), f"it cannot be read as CSV: {cause}") from cause
        if column not in table.column_names:
            raise InvalidSetting("texts", str(path), f"it has no column {column!r}, only {table.column_names}")
        texts = table[column].cast(pa.string()).combine_chunks().drop_null()
        if not len(texts):
            raise InvalidSetting("texts", str(path), "it has no texts")
        return cls(texts)

    def take(self, numbers: NDArray[np.int64]) -> pa.Array:
        return self.texts.take(pa.array(numbers % len(self.texts)))


@dataclass(frozen=True)
class GeneratedTexts:
    """Texts of random words. Half of the texts have a topic, whose words occur together, and the topics change.

    So there are frequent patterns of several words, which appear and vanish.
    """

    seed: int = 0

    def take(self, numbers: NDArray[np.int64]) -> pa.Array:
        blocks, inverse = np.unique(numbers // _BLOCK, return_inverse=True)
        texts = pa.concat_arrays([pa.array([], pa.string()), *(self._block(int(block)) for block in blocks)])
        return texts.take(pa.array(inverse * _BLOCK + numbers % _BLOCK))

    def _block(self, block: int) -> pa.Array:
        chance = np.random.default_rng([self.seed, block])
        sizes = chance.integers(4, 12, _BLOCK)
        words = chance.choice(_WORDS, sizes.sum(), p=_zipf())
        topics = self._topics(block * _BLOCK // _TOPIC_TEXTS)
        texts = []
        for own in np.split(words, np.cumsum(sizes)[:-1]):
            on_topic = topics[chance.integers(_TOPICS)] if chance.random() < 0.5 else []
            texts.append([*on_topic, *own.tolist()])
        offsets = np.cumsum([0, *map(len, texts)])
        mentioned = make_vocabulary(_WORDS).take(pa.array(np.concatenate(texts).astype(np.int64)))
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), mentioned), " ")

    def _topics(self, period: int) -> list[list[int]]:
        chance = np.random.default_rng([self.seed, period, 1])
        sizes = chance.integers(*_TOPIC_WORDS, _TOPICS)
        return [chance.choice(_WORDS, size, replace=False).tolist() for size in sizes]


def _zipf() -> NDArray[np.float64]:
    weights = 1 / (np.arange(_WORDS) + 20)
    return np.asarray(weights / weights.sum())


def make_vocabulary(words: int) -> pa.Array:
    """Return different words of as many syllables as it takes, three at least."""
    places = len(_SYLLABLES)
    syllables = 3
    while places**syllables < words:
        syllables += 1
    return pa.array(
        "".join(_SYLLABLES[number // places**place % places] for place in range(syllables)) for number in range(words)
    )
