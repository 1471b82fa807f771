"""Codec "arrow": tables and batches are decoded unchanged, in place."""

import decimal
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from storage.codec import unpack
from tests.storage.codec.objects import KEY, SECRET, codec_of, packed, round_trip

INTS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
KINDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pa.int64(), INTS),
    (pa.uint8(), st.integers(0, 255)),
    (pa.float64(), st.floats()),
    (pa.bool_(), st.booleans()),
    (pa.null(), st.none()),
    (pa.string(), TEXT),
    (pa.large_string(), TEXT),
    (pa.string_view(), TEXT),
    (pa.binary(), st.binary(max_size=20)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.decimal128(20, 2), st.integers(-(10**9), 10**9).map(lambda cents: decimal.Decimal(cents).scaleb(-2))),
    (pa.timestamp("ns", "UTC"), st.integers(0, 2**60).map(lambda ns: ns // 1000 * 1000)),
    (pa.list_(pa.int64()), st.lists(INTS, max_size=3)),
    (pa.map_(pa.string(), pa.int64()), st.lists(st.tuples(TEXT, INTS), max_size=3)),
    (pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())}), st.fixed_dictionaries({"a": INTS, "b": st.lists(TEXT)})),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["red", "green", ""])),
    (pa.list_(pa.dictionary(pa.int32(), pa.string())), st.lists(st.sampled_from(["x", "y"]), max_size=2)),
]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Up to three columns of any kind, in chunks (empty ones too), with nulls, sometimes cut out of a larger table."""
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    columns = {}
    for index in range(draw(st.integers(0, 3))):
        kind, values = draw(st.sampled_from(KINDS))
        column = st.tuples(*(st.lists(values | st.none(), min_size=n, max_size=n) for n in lengths))
        columns[f"c{index}"] = pa.chunked_array([pa.array(chunk, kind) for chunk in draw(column)], kind)
    table = pa.table(columns, metadata=draw(st.none() | st.just({"made": "by hand"})))
    return table.slice(draw(st.integers(0, 3)), draw(st.integers(0, 20)))


def same(one: Any, other: Any) -> bool:
    """As `equals`, but NaN is like NaN."""
    return (
        type(one) is type(other)
        and bool(one.schema.equals(other.schema, check_metadata=True))
        and repr(one.to_pylist()) == repr(other.to_pylist())
        and one.num_rows == other.num_rows
    )


@given(tables(), st.sampled_from(["auto", "none", "lz4", "zstd"]))
def test_a_table_is_decoded_unchanged(table: pa.Table, compression: str) -> None:
    assert same(round_trip(table, compression), table)


@given(tables())
def test_a_record_batch_is_decoded_as_a_record_batch(table: pa.Table) -> None:
    for batch in table.to_batches():
        assert same(round_trip(batch), batch)


def test_rows_without_columns_are_counted() -> None:
    rows = pa.table({"a": [1, 2, 3]}).select([])
    assert round_trip(rows).num_rows == 3


def test_no_rows_keep_their_columns() -> None:
    table = pa.table({"a": pa.array([], pa.int8()), "b": pa.array([], pa.dictionary(pa.int8(), pa.string()))})
    batch = pa.record_batch({"a": pa.array([], pa.int8())})
    assert same(round_trip(table), table)
    assert same(round_trip(batch), batch)


def test_chunks_may_have_dictionaries_of_their_own() -> None:
    chunks = [pa.array(words).dictionary_encode() for words in (["a", "b"], ["c", "b", None])]
    table = pa.table({"word": pa.chunked_array(chunks)})
    assert round_trip(table).equals(table)


def test_a_slice_is_stored_without_the_rest() -> None:
    table = pa.table({"n": list(range(100_000))})
    assert len(packed(table.slice(500, 10), "none")) < 2_000


@pytest.mark.parametrize("cut", [0, 1, 4])
def test_an_uncompressed_table_is_used_in_place_if_it_is_aligned(cut: int) -> None:
    table = pa.table({"n": list(range(1_000))})
    memory = pa.py_buffer(b"-" * cut + packed(table, "none"))
    column = unpack(memoryview(memory)[cut:], key=KEY, secret=SECRET).parts["state"]["n"]
    (numbers,) = [chunk.buffers()[1] for chunk in column.chunks]
    inside = memory.address <= numbers.address < memory.address + memory.size
    assert inside == (cut == 0)
    assert numbers.address % 8 == 0
    assert column.to_pylist() == list(range(1_000))


def test_tables_and_batches_are_arrow() -> None:
    table = pa.table({"n": [1]})
    assert [codec_of(table), codec_of(table.to_batches()[0]), codec_of([table])] == ["arrow", "arrow", "pickle"]
