"""Texts by their number: the same number always gives the same text, so that a stream of them can be checked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
from numpy.typing import NDArray

from elastic.errors import InvalidSetting

_BLOCK = 512  # texts made together from one seed
_SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "wo", "zu", "xa")
_WORDS = 4_000  # different ones; the k-th is chosen in proportion to 1 / (k + 20), as in a language without stop words
_TOPIC_WORDS = (2, 5)  # words that come together in the texts on a topic: at least, and fewer than
_TOPICS = 12  # that are talked about at a time
_FASHION = 4_096  # texts after which other topics are talked about


class Texts(Protocol):
    """A text for every number from 0 on."""

    def numbered(self, numbers: NDArray[np.int64]) -> pa.Array: ...


@dataclass(frozen=True)
class ReadTexts:
    """Texts that were read, over and over."""

    texts: pa.Array

    @classmethod
    def of_csv(cls, path: Path, column: str = "text") -> "ReadTexts":
        """The column of a CSV file with a header."""
        options = csv.ParseOptions(newlines_in_values=True)
        try:
            table = csv.read_csv(path, parse_options=options)
        except (pa.ArrowInvalid, OSError) as cause:
            raise InvalidSetting("texts", str(path), f"it cannot be read as CSV: {cause}") from cause
        if column not in table.column_names:
            raise InvalidSetting("texts", str(path), f"it has the columns {table.column_names}, and no {column!r}")
        texts = table[column].cast(pa.string()).combine_chunks().drop_null()
        if not len(texts):
            raise InvalidSetting("texts", str(path), "it has no texts")
        return cls(texts)

    def numbered(self, numbers: NDArray[np.int64]) -> pa.Array:
        return self.texts.take(pa.array(numbers % len(self.texts)))


@dataclass(frozen=True)
class MadeTexts:
    """Texts of invented words. Some topics are in fashion at a time, and the words of a topic come together.

    Half of the texts are on a topic. So there are frequent patterns of several words, and they come and go.
    """

    seed: int = 0

    def numbered(self, numbers: NDArray[np.int64]) -> pa.Array:
        blocks, inverse = np.unique(numbers // _BLOCK, return_inverse=True)
        made = pa.concat_arrays([pa.array([], pa.string()), *(self._block(int(block)) for block in blocks)])
        return made.take(pa.array(inverse * _BLOCK + numbers % _BLOCK))

    def _block(self, block: int) -> pa.Array:
        chance = np.random.default_rng([self.seed, block])
        sizes = chance.integers(4, 12, _BLOCK)
        words = chance.choice(_WORDS, sizes.sum(), p=_zipf())
        topics = self._topics(block * _BLOCK // _FASHION)
        texts = []
        for own in np.split(words, np.cumsum(sizes)[:-1]):
            on_topic = topics[chance.integers(_TOPICS)] if chance.random() < 0.5 else []
            texts.append([*on_topic, *own.tolist()])
        offsets = np.cumsum([0, *map(len, texts)])
        mentioned = _vocabulary().take(pa.array(np.concatenate(texts).astype(np.int64)))
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), mentioned), " ")

    def _topics(self, fashion: int) -> list[list[int]]:
        chance = np.random.default_rng([self.seed, fashion, 1])
        sizes = chance.integers(*_TOPIC_WORDS, _TOPICS)
        return [chance.choice(_WORDS, size, replace=False).tolist() for size in sizes]


def _zipf() -> NDArray[np.float64]:
    weights = 1 / (np.arange(_WORDS) + 20)
    return np.asarray(weights / weights.sum())


def _vocabulary() -> pa.Array:
    """Invented words of three syllables."""
    places = len(_SYLLABLES)
    return pa.array(
        _SYLLABLES[number % places] + _SYLLABLES[number // places % places] + _SYLLABLES[number // places**2]
        for number in range(_WORDS)
    )
