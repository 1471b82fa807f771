"""HyperLogLog on columns: approximate distinct counts whose sketches merge by the maximum of each register.

A value is hashed to 64 bits. Its low bits choose a register, and the register keeps the highest *rank*: the position
of the first one bit among the other bits. A rank of 0 means an empty register.

The estimator is that of Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017), algorithm 6:
unbiased for all cardinalities, without tables of corrections. The relative standard error is 1.04 / sqrt(registers).
"""

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.operators.kernels import Words
from elastic.operators.kernels.shared import mix_words
from elastic.routing.hashing import hash_keys

Ranks = NDArray[np.uint8]

_HASH_BITS = 64
_MIN_BITS, _MAX_BITS = 4, 16
_RANK_BITS = 8
_DEVIATION = 1.04
_INFINITY_ALPHA = 0.5 / math.log(2)


def bits_for(deviation: float) -> int:
    """Return the number of index bits for a relative standard deviation of the estimate, between 4 and 16."""
    bits = math.ceil(2 * math.log2(_DEVIATION / deviation))
    return min(max(bits, _MIN_BITS), _MAX_BITS)


def encode(values: pa.Array, bits: int) -> Words:
    """Return a code for each value, equal for equal values: its register and its rank; 0, without effect, for nulls."""
    hashes = mix_words(hash_keys([values]).view(np.uint64))  # type: ignore[arg-type] # on all words at once
    registers = (hashes & np.uint64((1 << bits) - 1)).astype(np.int64)
    ranks = _rank(hashes >> np.uint64(bits), _HASH_BITS - bits)  # type: ignore[arg-type]
    codes: Words = registers << _RANK_BITS | ranks
    if values.null_count:
        codes[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return codes


def update(sketches: Ranks, rows: Words, codes: Words) -> None:
    """Raise registers of sketches, one sketch per row of `sketches`, to the ranks in the codes."""
    registers = sketches.shape[1]
    places = rows * registers + (codes >> _RANK_BITS)
    np.maximum.at(sketches.reshape(-1), places, (codes & (1 << _RANK_BITS) - 1).astype(np.uint8))


def estimate(sketches: Ranks) -> NDArray[np.int64]:
    """Return the estimated number of distinct values of each sketch; O(registers) per sketch."""
    count, registers = sketches.shape
    ranks = _HASH_BITS - (registers.bit_length() - 1) + 1  # the highest rank
    offsets = np.arange(count)[:, None] * (ranks + 1)
    histograms = np.bincount((sketches + offsets).reshape(-1), minlength=count * (ranks + 1))
    histograms = histograms.reshape(count, ranks + 1).astype(np.float64)
    # z = m tau(1 - C[q+1]/m) / 2^q + sum of C[k] / 2^k + m sigma(C[0]/m), by Horner's rule
    z = registers * _tau(1 - histograms[:, ranks] / registers)
    for rank in range(ranks - 1, 0, -1):
        z = 0.5 * (z + histograms[:, rank])
    z += registers * _sigma(histograms[:, 0] / registers)
    estimates = np.where(np.isinf(z), 0.0, _INFINITY_ALPHA * registers * registers / z)
    return np.rint(estimates).astype(np.int64)


def _rank(words: NDArray[np.uint64], width: int) -> Words:
    """Return the position of the lowest one bit, from 1; `width + 1` for 0."""
    lowest = words & (~words + np.uint64(1))
    # A power of two is exact as a float, so its exponent is the position.
    _, exponents = np.frexp(lowest.astype(np.float64))
    return np.where(words == 0, width + 1, exponents).astype(np.int64)


def _sigma(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x + sum of x^(2^k) 2^(k-1) over k >= 1; infinite at 1."""
    power, factor, total = x.copy(), 1.0, x.copy()
    is_finite = x < 1
    while True:
        power = np.where(is_finite, power * power, 0.0)
        following = total + power * factor
        factor *= 2
        if np.array_equal(following, total):
            return np.where(is_finite, total, np.inf)
        total = following


def _tau(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (1 - x - sum of (1 - x^(2^-k))^2 2^-k over k >= 1) / 3; 0 at 0 and 1."""
    root, factor, total = x.copy(), 1.0, 1 - x
    is_inside = (x > 0) & (x < 1)
    while True:
        root = np.sqrt(root)
        factor *= 0.5
        following = total - (1 - root) ** 2 * factor
        if np.array_equal(following, total):
            return np.where(is_inside, total / 3, 0.0)
        total = following
