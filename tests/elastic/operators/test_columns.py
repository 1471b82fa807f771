"""Keyed columns behave like a dict, for every key type and with both kernels."""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import storage
from elastic.errors import InvalidJob, UnknownColumn, UnsupportedKeyType
from elastic.operators import kernels
from elastic.operators.columns import KeyedColumns
from elastic.operators.kernels import vectorised
from storage.codec import pack, unpack

KERNELS = ("insert_words", "find_words", "index_words", "insert_texts", "find_texts", "index_texts", "take_texts")
SECRET = storage.Secret.of("a secret for keyed columns")

floats = st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5]) | st.floats(width=32)
moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
days = st.dates(date(1900, 1, 1), date(2200, 1, 1))
KEY_TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float": (pa.float32(), floats),
    "double": (pa.float64(), floats | st.floats()),
    "date": (pa.date32(), days),
    "timestamp": (pa.timestamp("us", "UTC"), moments),
    "decimal": (pa.decimal128(20, 2), st.integers(-(10**17), 10**17).map(lambda cents: Decimal(cents) / 100)),
    "string": (pa.string(), st.text(max_size=12) | st.sampled_from(["", "a", "ab", "eight888", "nine99999"])),
    "large_string": (pa.large_string(), st.text(max_size=4)),
    "binary": (pa.binary(), st.binary(max_size=20)),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "struct": (
        pa.struct([("x", pa.string()), ("y", pa.int64())]),
        st.fixed_dictionaries({"x": st.none() | st.text(max_size=2), "y": st.none() | st.integers(-2, 2)}),
    ),
}


@pytest.fixture(params=["compiled", "numpy"])
def _kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        for name in (*KERNELS, "count_rows"):
            monkeypatch.setattr(kernels, name, getattr(vectorised, name))


def both_kernels() -> Iterator[pytest.MonkeyPatch]:
    """Hypothesis does not mix with function fixtures: each example tries both itself."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch
        for name in (*KERNELS, "count_rows"):
            patch.setattr(kernels, name, getattr(vectorised, name))
        yield patch


def plain(key: Any) -> Any:
    """A key that equals another one exactly if Spark says so."""
    if isinstance(key, float):
        return "nan" if math.isnan(key) else key
    if isinstance(key, dict):
        return tuple(plain(value) for value in key.values())
    return tuple(map(plain, key)) if isinstance(key, tuple) else key


def check_against_a_dict(schema: pa.Schema, batches: list[list[tuple[Any, ...]]]) -> None:
    columns = KeyedColumns(schema, {"count": "int64", "last": "float64"}, {"last": -1.0})
    counts: dict[Any, int] = {}
    for number, batch in enumerate(batches):
        arrays = [pa.array([key[place] for key in batch], kind) for place, kind in enumerate(schema.types)]
        keys = [plain(key) for key in zip(*(array.to_pylist() for array in arrays), strict=True)]
        keyed = arrays[0] if len(arrays) == 1 else arrays
        before = columns.find(keyed)
        assert [row >= 0 for row in before] == [key in counts for key in keys]
        touched = columns.count("count", columns.rows_for(keyed))
        assert len(touched) == len(set(keys))
        for key in keys:
            counts[key] = counts.get(key, 0) + 1
        columns.column("last")[touched] = number
        assert len(columns) == len(counts)
        data = pack({"state": columns.to_arrays()}, key="k", secret=SECRET)
        columns = KeyedColumns.from_arrays(unpack(data, key="k", secret=SECRET).parts["state"])
    table = columns.to_table()
    assert table.schema.names == [*schema.names, "count", "last"]
    assert [table.schema.field(name).type for name in schema.names] == schema.types
    stored = list(zip(*(table[name].to_pylist() for name in schema.names), strict=True))
    assert {plain(key): count for key, count in zip(stored, table["count"].to_pylist(), strict=True)} == counts
    assert set(table["last"].to_pylist()) <= set(range(len(batches)))


@pytest.mark.parametrize("name", KEY_TYPES)
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_one_key_column_of_any_type_behaves_like_a_dict(name: str, data: st.DataObject) -> None:
    kind, values = KEY_TYPES[name]
    batches = data.draw(st.lists(st.lists(st.tuples(st.none() | values), max_size=12), max_size=4))
    for _ in both_kernels():
        check_against_a_dict(pa.schema([("key", kind)]), batches)


@given(data=st.data())
def test_several_key_columns_behave_like_a_dict(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(KEY_TYPES)), min_size=2, max_size=3))
    row = st.tuples(*(st.none() | KEY_TYPES[name][1] for name in names))
    batches = data.draw(st.lists(st.lists(row, max_size=12), max_size=4))
    schema = pa.schema([(f"key{place}", KEY_TYPES[name][0]) for place, name in enumerate(names)])
    for _ in both_kernels():
        check_against_a_dict(schema, batches)


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("text", [False, True])
def test_many_keys_are_all_found_again_across_growth_and_storage(text: bool) -> None:
    numbers = np.random.default_rng(5).permutation(40_000).astype(np.int64)
    keyed: Callable[[Any], Any] = (lambda some: pa.array([f"key {n}" for n in some])) if text else pa.array
    columns = KeyedColumns("key string" if text else "key long", {})
    for begin in range(0, len(numbers), 7_000):
        rows = columns.rows_for(keyed(numbers[begin : begin + 7_000]))
        assert rows.tolist() == list(range(begin, min(begin + 7_000, len(numbers))))
    again = KeyedColumns.from_arrays(columns.to_arrays())
    assert again.find(keyed(numbers)).tolist() == list(range(len(numbers)))
    assert (again.find(keyed(numbers + 40_000)) == -1).all()


@given(st.lists(st.none() | st.text(max_size=2), max_size=20), st.data())
def test_keep_keeps_the_given_rows(words: list[str | None], data: st.DataObject) -> None:
    columns = KeyedColumns("word string", {"row": "int64"})
    columns.rows_for(words)
    columns.column("row")[:] = np.arange(len(columns))
    table = columns.to_table()
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(columns), max_size=len(columns))), np.bool_)
    columns.keep(mask)
    kept = table.filter(pa.array(mask))
    assert columns.to_table().equals(kept)
    assert columns.find(kept["word"]).tolist() == list(range(len(kept)))
    columns.rows_for(words)
    assert len(columns) == len(table)


def test_keeping_some_keys_of_several_columns_renumbers_them() -> None:
    columns = KeyedColumns("a string, b int", {"v": "int64"})
    columns.rows_for([["x", None, "y"], [1, 2, None]])
    columns.column("v")[:] = [10, 20, 30]
    columns.keep(np.array([2, 0]))
    assert columns.to_table().to_pylist() == [{"a": "y", "b": None, "v": 30}, {"a": "x", "b": 1, "v": 10}]
    assert columns.find([["x"], [1]]).tolist() == [1]


def test_captured_arrays_do_not_see_later_changes() -> None:
    columns = KeyedColumns("key long", {"count": "int64"})
    columns.count("count", columns.rows_for([1, 2, 2]))
    captured, table, twin = columns.to_arrays(), columns.to_table(), columns.copy()
    columns.count("count", columns.rows_for(list(range(1000))))
    for early in (KeyedColumns.from_arrays(captured).to_table(), table, twin.to_table()):
        assert early.to_pylist() == [{"key": 1, "count": 1}, {"key": 2, "count": 2}]


def test_capturing_copies_no_keys() -> None:
    columns = KeyedColumns("word string", {})
    columns.rows_for([f"a long text that is key number {number}" for number in range(100)])
    first, second = columns.to_arrays(), columns.to_arrays()
    assert np.shares_memory(first["keys.data"], second["keys.data"])


def test_a_chunked_column_is_one_column() -> None:
    columns = KeyedColumns("word string", {})
    assert columns.rows_for(pa.chunked_array([["a", "b"], ["b", "c"]])).tolist() == [0, 1, 1, 2]
    assert columns.rows_for(pa.table({"n": [1], "word": ["c"]})).tolist() == [2]
    assert columns.find(pa.array(["x", "b", "c"])[1:]).tolist() == [1, 2]


def test_a_single_key_can_be_looked_up() -> None:
    columns = KeyedColumns("a string, b int", {"v": "int64"})
    rows = columns.rows_for([["x"], [1]])
    columns.column("v")[rows] = 7
    assert columns.get(("x", 1)) == {"v": 7}
    assert columns.get(("x", 2)) is None
    nested = KeyedColumns("s struct<x: string, y: struct<z: int>>", {"v": "int64"})
    nested.rows_for([{"x": "a", "y": {"z": 1}}])
    assert nested.get((("a", (1,)),)) == nested.get(({"x": "a", "y": {"z": 1}},)) == {"v": 0}


def test_nbytes_is_the_size_of_the_stored_arrays() -> None:
    columns = KeyedColumns("word string", {"count": "int64"})
    columns.rows_for([f"word{number:06}" for number in range(10_000)])
    arrays = columns.to_arrays()
    assert columns.nbytes == pytest.approx(sum(array.nbytes for array in arrays.values()), rel=0.01)


def test_invalid_columns_are_refused() -> None:
    with pytest.raises(UnsupportedKeyType, match=r"key\.x"):
        KeyedColumns("key struct<x: map<int, int>>", {})
    with pytest.raises(InvalidJob, match="both keys and columns"):
        KeyedColumns("key int", {"key": "int64"})
    with pytest.raises(InvalidJob, match="need a key"):
        KeyedColumns(pa.schema([]), {})
    with pytest.raises(InvalidJob, match="at most 63"):
        KeyedColumns(pa.schema([(f"k{number}", pa.int8()) for number in range(64)]), {})
    with pytest.raises(UnknownColumn, match="count"):
        KeyedColumns("key int", {"count": "int64"}).column("cout")
