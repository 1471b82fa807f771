"""Codec "mapping": dicts of scalars, exactly, and nothing that is not one."""

import collections
import enum
import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from tests.storage.codec.objects import codec_of, round_trip

INTS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
KEYS = [TEXT, INTS, st.binary(max_size=8)]
VALUES: list[st.SearchStrategy[Any]] = [*KEYS, st.floats(), st.booleans(), st.none()]
UNIFORM = st.one_of(
    *(st.dictionaries(keys, values | st.none(), max_size=12) for keys in KEYS for values in VALUES),
)
ANYTHING = st.dictionaries(st.one_of(TEXT, st.integers(), st.booleans()), st.one_of(TEXT, st.integers(), *VALUES))


def exactly(mapping: dict[Any, Any]) -> list[tuple[Any, ...]]:
    """Entries in order with their types, so that True is not 1, and NaN is like NaN."""
    return [(type(key), key, type(value), repr(value)) for key, value in mapping.items()]


@given(UNIFORM, st.sampled_from(["auto", "none", "lz4", "zstd"]))
def test_a_dict_of_scalars_is_decoded_unchanged(mapping: dict[Any, Any], compression: str) -> None:
    assert codec_of(mapping) == "mapping"
    assert exactly(round_trip(mapping, compression)) == exactly(mapping)


@given(ANYTHING)
def test_any_dict_is_decoded_unchanged_whichever_codec_encodes_it(mapping: dict[Any, Any]) -> None:
    assert exactly(round_trip(mapping)) == exactly(mapping)


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    "mapping",
    [
        {"a": 2**63},
        {-(2**63) - 1: "a"},
        {"a": 1, 2: 1},
        {"a": 1, "b": 1.0},
        {"a": 1, "b": True},
        {True: 1},
        {None: 1},
        {1.5: 1},
        {"\ud800": 1},
        {"a": "\udfff"},
        {"a": Colour.RED},
        {"a": np.float64(1.5)},
        {"a": [1]},
        collections.Counter("abca"),
        collections.OrderedDict(a=1),
        collections.defaultdict(int, a=1),
    ],
    ids=repr,
)
def test_a_dict_that_two_columns_would_change_is_pickled(mapping: dict[Any, Any]) -> None:
    back = round_trip(mapping)
    assert codec_of(mapping) == "pickle"
    assert type(back) is type(mapping)
    assert exactly(back) == exactly(mapping)


def test_nan_and_none_stay_apart() -> None:
    back = round_trip({"nan": math.nan, "none": None, "zero": -0.0})
    assert math.isnan(back["nan"])
    assert back["none"] is None
    assert math.copysign(1, back["zero"]) == -1
