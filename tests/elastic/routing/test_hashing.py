"""Key hashes without Spark: XXH64 of the bytes that Spark hashes, column by column. The Spark tests compare the two."""

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from xxhash import xxh64_intdigest

from elastic.errors import InvalidJob, InvalidKey, UnknownColumn, UnsupportedKeyType
from elastic.routing import check_key, hash_key, hash_keys, spark_hash_expression, to_tasks, xxh64
from tests.elastic.routing.keys import KEYS, ODD_NAN, key_columns

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
PARTS = [pa.int32(), pa.string(), pa.binary()]


def to_signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def pack(value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return struct.pack("<i", value)
    return value.encode() if isinstance(value, str) else value


def chain(*parts: bytes) -> int:
    """The definition: each part is hashed with the hash before it as its seed."""
    seed = 42
    for part in parts:
        seed = xxh64_intdigest(part, seed)
    return to_signed(seed)


# What Spark 4.3 answers to SELECT xxhash64(...).
GOLDEN: list[tuple[tuple[Any, ...], list[pa.DataType] | None, int]] = [
    ((1,), [pa.int32()], -6698625589789238999),
    ((1,), None, -7001672635703045582),
    (("a",), None, -8582455328737087284),
    ((1.0, "b"), None, 2895822183501214951),
    ((-0.0,), None, -5252525462095825812),
    ((True,), None, -6698625589789238999),
    ((date(2020, 1, 2),), None, 3788440403249251806),
    ((Decimal("1.25"),), [pa.decimal128(20, 2)], 284054986895877072),
    ((None, ""), [pa.int32(), pa.string()], -7444071767201028348),
]


@given(st.lists(st.binary(max_size=100), min_size=64, max_size=80), st.booleans(), st.integers(0, 5))
def test_texts_of_every_length_hash_alike_with_and_without_a_compiler(
    texts: list[bytes], compiler: bool, skipped: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not compiler:
            patch.setattr(xxh64, "load_compiled", lambda *_: None)
        hashes = hash_keys([pa.array(texts).slice(skipped)])
    assert hashes.tolist() == [to_signed(xxh64_intdigest(text, 42)) for text in texts[skipped:]]


@pytest.mark.parametrize(("values", "types", "expected"), GOLDEN)
def test_hashes_equal_those_of_spark(values: tuple[Any, ...], types: list[pa.DataType] | None, expected: int) -> None:
    assert hash_key(*values, types=types) == expected


@given(st.lists(st.none() | INT64))
def test_longs_are_hashed_as_eight_bytes(values: list[int | None]) -> None:
    expected = [42 if value is None else chain(struct.pack("<q", value)) for value in values]
    assert hash_keys([pa.array(values, pa.int64())]).tolist() == expected


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32()])
def test_smaller_numbers_are_hashed_as_four_bytes(kind: pa.DataType) -> None:
    values = [0, 1, -1, 127, -128, None]
    expected = [42 if value is None else chain(struct.pack("<i", value)) for value in values]
    assert hash_keys([pa.array(values, kind)]).tolist() == expected


@given(st.lists(st.tuples(st.none() | INT32, st.none() | st.text(), st.none() | st.binary(max_size=80)), min_size=1))
def test_every_column_starts_from_the_hash_of_the_columns_before(rows: list[tuple[Any, ...]]) -> None:
    columns = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), PARTS, strict=True)]
    expected = [chain(*(pack(part) for part in row if part is not None)) for row in rows]
    assert hash_keys(columns).tolist() == expected


def test_every_zero_is_one_key_and_every_nan_is_one_key() -> None:
    for kind in (pa.float32(), pa.float64()):
        zeros = hash_keys([pa.array([0.0, -0.0], kind)])
        nans = hash_keys([pa.array([float("nan"), ODD_NAN, -ODD_NAN], kind)])
        assert len(set(zeros.tolist())) == len(set(nans.tolist())) == 1
        assert zeros[0] != nans[0]


def test_chunks_and_slices_hash_like_the_whole() -> None:
    table = key_columns(500, seed=1)
    for name in table.column_names:
        whole = hash_keys([table[name], table["string"]])
        pieces = [pa.concat_tables([table.slice(0, 7), table.slice(7, 0), table.slice(7)])[name], table["string"]]
        assert hash_keys(pieces).tolist() == whole.tolist()
        (array,) = table[name].chunks
        assert hash_keys([array.slice(13, 100)]).tolist() == hash_keys([array]).tolist()[13:113]


@pytest.mark.parametrize("name", [*KEYS, "struct", "nested struct"])
def test_a_single_key_hashes_like_a_column_of_keys(name: str) -> None:
    table = key_columns(60, seed=2)
    column, kind = table[name], table.schema.field(name).type
    assert [hash_key(value, types=[kind]) for value in column.to_pylist()] == hash_keys([column]).tolist()


def test_types_are_guessed_from_python_values_the_way_python_does() -> None:
    instant = datetime(2020, 1, 2, 3, 4, 5, 6)
    values: dict[Any, pa.DataType] = {
        True: pa.bool_(),
        7: pa.int64(),
        0.5: pa.float64(),
        "x": pa.string(),
        b"x": pa.binary(),
        date(2020, 1, 2): pa.date32(),
        instant: pa.timestamp("us"),
        instant.replace(tzinfo=UTC): pa.timestamp("us", "UTC"),
        Decimal("1.25"): pa.decimal128(3, 2),
        None: pa.null(),
    }
    for value, kind in values.items():
        assert hash_key(value) == hash_key(value, types=[kind])
    assert hash_key((1, ("a", None))) == hash_key({"x": 1, "y": "a"}) == hash_key(1, "a")


def test_equivalent_types_hash_alike() -> None:
    texts = pa.array(["a", None, "a", "", "ключ"])
    others = [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.binary(), pa.binary_view()]
    for kind in others:
        assert hash_keys([texts.cast(kind)]).tolist() == hash_keys([texts]).tolist()
    days = pa.array([date(2020, 1, 2), date(1969, 12, 31), None])
    assert hash_keys([days.cast(pa.date64())]).tolist() == hash_keys([days]).tolist()
    micros = pa.array([-1_500_000_000, 0, 2_000_000_000, None], pa.timestamp("us"))
    for unit in ("s", "ms", "ns"):
        exact = micros if unit != "s" else pa.array([-1500, 0, 2000, None], pa.timestamp("s")).cast(pa.timestamp("us"))
        assert hash_keys([exact.cast(pa.timestamp(unit))]).tolist() == hash_keys([exact]).tolist()


def test_a_null_key_hashes_to_the_seed() -> None:
    assert hash_keys([pa.nulls(2), pa.nulls(2, pa.int64())]).tolist() == [42, 42]


def test_no_rows_have_no_hashes() -> None:
    for kind in [*(kind for kind, _ in KEYS.values()), pa.struct([("a", pa.string())])]:
        assert hash_keys([pa.array([], kind)]).tolist() == []


@given(st.lists(INT64), st.integers(1, 5000))
def test_a_task_is_the_remainder_and_never_negative(hashes: list[int], tasks: int) -> None:
    assert to_tasks(np.array(hashes, np.int64), tasks).tolist() == [value % tasks for value in hashes]


UNHASHABLE = [pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64()), pa.uint64(), pa.float16(), pa.time64("us")]


@pytest.mark.parametrize("kind", [*UNHASHABLE, pa.duration("us"), pa.struct([("inner", pa.list_(pa.int64()))])])
def test_a_type_without_a_hash_is_refused_by_the_name_of_its_column(kind: pa.DataType) -> None:
    schema = pa.schema([("good", pa.int64()), ("bad", kind)])
    with pytest.raises(UnsupportedKeyType) as refused:
        check_key(schema, ["good", "bad"])
    assert refused.value.column in ("bad", "bad.inner")
    check_key(schema, ["good"])


def test_a_key_that_the_rows_do_not_have_is_refused() -> None:
    with pytest.raises(UnknownColumn, match="Did you mean 'word'"):
        check_key(pa.schema([("word", pa.string())]), ["wrod"])
    with pytest.raises(InvalidJob, match="at least one"):
        check_key(pa.schema([]), [])


def test_columns_are_quoted_for_spark() -> None:
    assert spark_hash_expression(["a", "b.c", "d`e"]) == "xxhash64(`a`, `b.c`, `d``e`)"


@pytest.mark.parametrize(
    ("values", "types"),
    [
        ((5,), [pa.string()]),
        (("5",), [pa.int64()]),
        ((b"a",), [pa.string()]),
        (("a",), [pa.binary()]),
        ((True,), [pa.int64()]),
        ((5.5,), [pa.int64()]),
        ((2**40,), [pa.int32()]),
        ((5,), [pa.timestamp("us", "UTC")]),
        (([1],), [pa.string()]),
        (("a", 1), [pa.string()]),
        (("a",), [pa.string(), pa.int64()]),
        (({"x": "1"},), [pa.struct({"x": pa.int64()})]),
        (((1, 2),), [pa.struct({"x": pa.int64()})]),
        (((1,),), [pa.int64()]),
    ],
)
def test_a_key_of_another_type_is_refused(values: tuple[Any, ...], types: list[pa.DataType]) -> None:
    with pytest.raises(InvalidKey):
        hash_key(*values, types=types)


def test_a_key_that_equals_one_of_its_type_is_that_key() -> None:
    assert hash_key(np.int64(5), types=[pa.int32()]) == hash_key(5, types=[pa.int32()])
    assert hash_key(5.0, types=[pa.int64()]) == hash_key(5)
    assert hash_key(None, types=[pa.string()]) == hash_key(None)
    assert hash_key(0.1, types=[pa.float32()]) == hash_key(np.float32(0.1), types=[pa.float32()])
