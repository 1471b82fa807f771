"""Streams of keys: log-normal, Zipf, drifting, the edges of a graph, and the words of tweets."""

import csv
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.routing import hash_keys
from elastic.routing.splitting import KeyFrequencies

Keys = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]
_LEAST_EXPONENT, _LARGEST_EXPONENT = 0.0, 10.0  # of Zipf's law


@dataclass(frozen=True, eq=False)
class Stream:
    """Messages with keys 0 to K - 1, in order; `hashes[k]` is the hash of key k.

    Invariant: there is a message, and every key has one.
    """

    name: str
    keys: Keys
    hashes: Hashes

    def __post_init__(self) -> None:
        if not len(self.keys) or not np.bincount(self.keys, minlength=len(self.hashes)).all():
            raise InvalidJob(f"the stream {self.name} has keys without messages. Number the keys that it has from 0.")

    @classmethod
    def of_numbers(cls, name: str, numbers: npt.NDArray[np.integer]) -> Self:
        """Return the stream whose keys are these numbers, each at least 0 and not much larger than there are keys."""
        counts = np.bincount(numbers)
        order = np.cumsum(counts > 0, dtype=np.int32) - 1
        return cls(name, order[numbers], hash_keys([pa.array(np.flatnonzero(counts))]).view(np.uint64))

    @property
    def messages(self) -> int:
        return len(self.keys)

    @cached_property
    def frequencies(self) -> KeyFrequencies:
        return KeyFrequencies(self.hashes, np.bincount(self.keys))

    @property
    def heaviest_share(self) -> float:
        """The share of the most frequent key, p1."""
        return float(self.frequencies.rows.max() / self.messages)


def log_normal(name: str, mu: float, sigma: float, messages: int, seed: int = 0) -> Stream:
    """Return a stream whose keys are log-normal samples, rounded; floor would give other numbers of keys."""
    samples = np.random.default_rng([seed, 1]).lognormal(mu, sigma, messages)
    return Stream.of_numbers(name, np.rint(samples).astype(np.int64))


def zipf(name: str, keys: int, heaviest_share: float, messages: int, seed: int = 0) -> Stream:
    """Return a stream with Zipf frequencies, with the exponent that gives the first key this share."""
    return Stream.of_numbers(
        name, _draw(_zipf_shares(keys, heaviest_share), messages, np.random.default_rng([seed, 2]))
    )


def drifting(name: str, keys: int, heaviest_share: float, messages: int, periods: int, seed: int = 0) -> Stream:
    """Return a stream whose popular keys change: in each period other keys have the largest Zipf frequencies."""
    rng = np.random.default_rng([seed, 3])
    shares = _zipf_shares(keys, heaviest_share)
    parts = np.diff(np.linspace(0, messages, periods + 1).astype(np.int64))
    drawn = [rng.permutation(keys)[_draw(shares, int(part), rng)] for part in parts]
    return Stream.of_numbers(name, np.concatenate(drawn))


def edges(
    name: str, vertices: int, in_share: float, out_share: float, messages: int, seed: int = 0
) -> tuple[Stream, npt.NDArray[np.int64]]:
    """Return the targets of the edges of a graph as a stream, and the source vertex of each edge.

    In-degrees and out-degrees have Zipf frequencies with these shares of the first vertex, independently of each other.
    """
    rng = np.random.default_rng([seed, 4])
    sources = _draw(_zipf_shares(vertices, out_share), messages, rng).astype(np.int64)
    return Stream.of_numbers(name, _draw(_zipf_shares(vertices, in_share), messages, rng)), sources


def words(name: str, path: Path) -> Stream:
    """Return the words of the column `text` of a CSV file, in lower case."""
    with path.open(newline="", encoding="utf-8") as file:
        found = [word for row in csv.DictReader(file) for word in re.findall(r"[\w'#@]+", row["text"].lower())]
    encoded = pa.array(found, pa.string()).dictionary_encode()
    hashes = hash_keys([encoded.dictionary]).view(np.uint64)
    return Stream(name, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32), hashes)


def _zipf_shares(keys: int, heaviest_share: float) -> npt.NDArray[np.float64]:
    """Return Zipf's shares with the first one given, by bisection of the exponent."""
    if not 1 / keys <= heaviest_share < 1:
        raise InvalidJob(
            f"the heaviest of {keys} keys cannot have {heaviest_share:g} of all messages. Use 1 / keys to 1."
        )
    ranks = np.arange(1.0, keys + 1)
    low, high = _LEAST_EXPONENT, _LARGEST_EXPONENT
    for _ in range(40):
        exponent = (low + high) / 2
        low, high = (exponent, high) if 1 / (ranks**-exponent).sum() < heaviest_share else (low, exponent)
    weights = ranks**-low
    shares: npt.NDArray[np.float64] = weights / weights.sum()
    return shares


def _draw(shares: npt.NDArray[np.float64], messages: int, rng: np.random.Generator) -> Keys:
    """Draw keys independently: how often each comes, and then their order, which is faster than one by one."""
    drawn = np.repeat(np.arange(len(shares), dtype=np.int32), rng.multinomial(messages, shares))
    rng.shuffle(drawn)
    return drawn
