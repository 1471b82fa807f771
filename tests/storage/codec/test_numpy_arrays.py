"""Codec "numpy": type, shape, order and every bit of an array are kept."""

from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from storage.codec import unpack
from tests.storage.codec.objects import KEY, SECRET, codec_of, packed, round_trip

Array = NDArray[Any]

DTYPES = st.one_of(
    hnp.scalar_dtypes(),  # both byte orders, datetime64 and timedelta64 of all units among them
    hnp.unicode_string_dtypes(max_len=4),
    hnp.byte_string_dtypes(max_len=4),
)
LAYOUTS: list[Callable[[Array], Array]] = [
    np.ascontiguousarray,
    np.asfortranarray,
    lambda array: array.T,
    lambda array: array[..., ::2] if array.ndim else array,
    lambda array: array[::-1] if array.ndim else array,
]


@st.composite
def arrays(draw: st.DrawFn) -> Array:
    """From no dimension to three, empty ones too, in C order, Fortran order, with gaps or backwards."""
    plain = draw(hnp.arrays(draw(DTYPES), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)))
    return draw(st.sampled_from(LAYOUTS))(plain)


def same(one: Array, other: Array) -> bool:
    return (one.dtype.str, one.shape, one.tobytes()) == (other.dtype.str, other.shape, other.tobytes())


@given(arrays(), st.sampled_from(["auto", "none", "lz4", "zstd"]))
def test_an_array_is_decoded_unchanged(array: Array, compression: str) -> None:
    back = round_trip(array, compression)
    assert codec_of(array) == "numpy"
    assert same(back, array)
    if array.flags.forc:
        assert (back.flags.c_contiguous, back.flags.f_contiguous) == (
            array.flags.c_contiguous,
            array.flags.f_contiguous,
        )


@given(st.dictionaries(st.text(max_size=3), arrays(), min_size=1, max_size=2))
def test_named_arrays_keep_their_order(named: dict[str, Array]) -> None:
    back = round_trip(named)
    assert codec_of(named) == "numpy"
    assert list(back) == list(named)
    assert all(same(back[name], array) for name, array in named.items())


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_decoded_arrays_are_read_only(compression: str) -> None:
    back = round_trip(np.zeros(100), compression)
    with pytest.raises(ValueError, match="read-only"):
        back[0] = 1.0


def test_an_uncompressed_array_is_used_in_place() -> None:
    data = np.frombuffer(packed(np.arange(1_000), "none"), np.uint8)
    back = unpack(data.data, key=KEY, secret=SECRET).parts["state"]
    assert np.shares_memory(back, data)


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, "two", None], dtype=object),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        np.array(["text of", "any length"], dtype=np.dtypes.StringDType()),
        np.zeros(3, dtype=np.dtype("i4", metadata={"unit": "ms"})),
        np.ma.masked_array([1, 2], mask=[False, True]),
    ],
    ids=["objects", "structured", "variable text", "metadata", "masked"],
)
def test_arrays_that_are_more_than_their_memory_are_pickled(array: Array) -> None:
    back = round_trip(array)
    assert codec_of(array) == codec_of({"a": array}) == "pickle"
    assert (type(back), back.dtype, back.tolist()) == (type(array), array.dtype, array.tolist())


def test_number_types_of_other_libraries_are_pickled() -> None:
    # NumPy's own example of one; to NumPy it looks like raw bytes of eight.
    rational = pytest.importorskip("numpy._core._rational_tests").rational
    halves = np.array([rational(1, 2)])
    assert codec_of(halves) == "pickle"
    assert round_trip(halves).tolist() == [rational(1, 2)]


def test_arrays_under_other_names_than_text_are_pickled() -> None:
    back = round_trip({1: np.arange(3)})
    assert codec_of({1: np.arange(3)}) == "pickle"
    assert back[1].tolist() == [0, 1, 2]
