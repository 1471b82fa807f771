"""Compression: explicit ones are obeyed, "auto" pays or stays away."""

import numpy as np
import pyarrow as pa
import pytest

from storage.codec import COMPRESSIONS, Part, read_header
from storage.errors import InvalidStorageInput
from tests.storage.codec.objects import KEY, SECRET, VALUES, packed, round_trip

NOISE = np.random.default_rng(7).bytes(1_000_000)


def part_of(value: object, compression: str) -> Part:
    return read_header(packed(value, compression), key=KEY, secret=SECRET).parts["state"]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("codec", VALUES)
def test_a_compression_that_was_asked_for_is_used(codec: str, compression: str) -> None:
    part = part_of(VALUES[codec], compression)
    assert (part.codec, part.compression) == (codec, compression)
    assert (part.stored_size == part.raw_size) == (compression == "none")


@pytest.mark.parametrize(
    "value",
    [
        pa.table({"word": ["again", "and"] * 100_000}),
        {f"user-{index}": index for index in range(50_000)},
        np.zeros(100_000),
        b"again and " * 100_000,
        [b"again and " * 100_000],
    ],
    ids=["arrow", "mapping", "numpy", "bytes", "pickle"],
)
def test_auto_compresses_what_repeats_itself(value: object) -> None:
    part = part_of(value, "auto")
    assert part.compression == "lz4"
    assert part.stored_size < 0.75 * part.raw_size


@pytest.mark.parametrize(
    "value",
    [
        pa.table({"noise": pa.array(np.frombuffer(NOISE, np.int64))}),
        np.frombuffer(NOISE, np.int64),
        NOISE,
        [NOISE],
        b"",
    ],
    ids=["arrow", "numpy", "bytes", "pickle", "nothing"],
)
def test_auto_leaves_noise_alone(value: object) -> None:
    assert part_of(value, "auto").compression == "none"


def test_auto_looks_at_all_of_a_large_state() -> None:
    assert part_of(NOISE[:100_000] + bytes(900_000), "auto").compression == "lz4"
    assert part_of(bytes(40_000) + NOISE, "auto").compression == "none"


def test_noise_survives_a_compression_that_makes_it_larger() -> None:
    part = part_of(NOISE, "lz4")
    assert part.stored_size > part.raw_size
    assert round_trip(NOISE, "lz4") == NOISE


def test_an_unknown_compression_is_refused_with_those_that_exist() -> None:
    with pytest.raises(InvalidStorageInput, match=r"no compression 'gzip'. Use auto, none, lz4, zstd"):
        packed(b"", "gzip")
