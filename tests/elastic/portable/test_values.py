"""Values as bytes without pickle: they come back as they were, and no bytes of others do any harm."""

import math
from collections import Counter, OrderedDict, deque
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.operators import KeyedColumns
from elastic.portable import values

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.complex_numbers(allow_nan=False)
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner), max_leaves=5)
TREES = st.recursive(
    HASHABLE,
    lambda inner: st.lists(inner) | st.dictionaries(HASHABLE, inner) | st.tuples(inner) | st.sets(HASHABLE),
    max_leaves=12,
)


@given(TREES)
def test_a_value_comes_back_with_its_type(value: Any) -> None:
    found = values.decode(values.encode(value))
    assert found == value
    assert repr(type(found)) == repr(type(value))


@pytest.mark.parametrize(
    "value",
    [
        Counter(a=2),
        OrderedDict(b=1, a=2),
        deque([1, 2], 3),
        bytearray(b"x"),
        datetime(2026, 1, 1, fold=1),
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2))),
        np.int8(3),
        np.datetime64("2026-01-01"),
        1 << 80,
        -0.0,
        {1: "int", "1": "text"},
    ],
    ids=repr,
)
def test_other_types_come_back(value: Any) -> None:
    found = values.decode(values.encode(value))
    assert (found, type(found), repr(found)) == (value, type(value), repr(value))


def test_nan_and_arrays_and_tables_come_back() -> None:
    found = values.decode(values.encode([math.nan, np.arange(6.0).reshape(2, 3), pa.table({"a": [1, None]})]))
    assert math.isnan(found[0])
    assert found[1].tolist() == [[0, 1, 2], [3, 4, 5]]
    found[1][0, 0] = 7  # writable
    assert found[2].equals(pa.table({"a": [1, None]}))


class Own:
    """Of a user."""


@pytest.mark.parametrize("value", [Own(), Own, {"a": [Own()]}, lambda: 0, "\ud800", np.array([Own()]), {1, (Own(),)}])
def test_what_needs_pickle_is_refused(value: Any) -> None:
    with pytest.raises(values.Unencodable):
        values.encode(value)


def test_structures_of_the_engine_are_read_from_trusted_bytes_only() -> None:
    columns = KeyedColumns("key long", {"n": "int64"})
    columns.rows_for([5, 6])
    data = values.encode(columns)
    with pytest.raises(values.Untrusted):
        values.decode(data)
    assert values.decode(data, trusted=True).to_table().equals(columns.to_table())


@given(st.binary() | st.binary().map(lambda rest: values.encode({"a": [1, b"x"]})[:9] + rest))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(values.Undecodable):
        values.decode(data)


@given(st.integers(0, 200), st.integers(0, 255))
def test_flipped_bytes_are_read_or_refused(place: int, byte: int) -> None:
    data = bytearray(values.encode({"a": [1, b"xyz", (2.5, date(2026, 1, 1))], "b": np.arange(3), "t": time(1)}))
    data[place % len(data)] = byte
    with suppress(values.Undecodable):
        values.decode(bytes(data))


def test_uuid_and_decimal() -> None:
    value = {UUID(int=5): Decimal("1.50")}
    assert repr(values.decode(values.encode(value))) == repr(value)
