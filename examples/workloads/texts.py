"""Batches of short texts: generated with skewed words, or from a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastic.errors import InvalidSetting
from examples.frequent_patterns.texts import CsvTexts
from examples.workloads.key_stream import KeyStream
from examples.workloads.pace import Pace

_TEXT_WORDS = 8  # of a generated text


class TextBatches(Protocol):
    """The texts of every batch from 0 on."""

    def batch(self, number: int) -> pa.Array: ...


@dataclass(frozen=True)
class SkewedTexts:
    """Texts of words that a `KeyStream` draws; a batch has as many words as the pace says, most texts 8."""

    words: KeyStream
    pace: Pace

    def batch(self, number: int) -> pa.Array:
        count = self.pace.rows_per_batch
        drawn = self.words.draw(number, self.pace.phase_of(number), count)
        offsets = np.append(np.arange(0, count, _TEXT_WORDS), count)
        texts = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), self.words.names.take(pa.array(drawn)))
        return pc.binary_join(texts, " ")


@dataclass(frozen=True)
class FileTexts:
    """The texts of a file, a batch after the other, repeated endlessly."""

    texts: CsvTexts
    per_batch: int

    def batch(self, number: int) -> pa.Array:
        return self.texts.take(np.arange(number * self.per_batch, (number + 1) * self.per_batch))


def read_texts(path: Path) -> CsvTexts:
    """Read the texts of a file: the column `text` of a CSV file, or the lines of any other file."""
    if path.suffix == ".csv":
        return CsvTexts.read(path)
    try:
        lines = [line for line in path.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as cause:
        raise InvalidSetting("texts", str(path), f"it cannot be read as text: {cause}") from cause
    if not lines:
        raise InvalidSetting("texts", str(path), "it has no texts")
    return CsvTexts(pa.array(lines, pa.string()))
