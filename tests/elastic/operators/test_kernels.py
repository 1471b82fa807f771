"""Compiled and vectorised kernels number alike, and either can be selected."""

import subprocess
import sys
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from elastic.operators.kernels import vectorised

compiled = pytest.importorskip("elastic.operators.kernels.compiled")


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


@given(st.lists(st.integers(-3, 30), max_size=60), st.integers(1, 20))
def test_both_stop_at_the_same_word_when_the_arrays_are_full(numbers: list[int], most: int) -> None:
    words = frozen(np.array(numbers, np.int64))
    ends = []
    for kernels in (compiled, vectorised):
        stored, buckets, rows = np.zeros(32, np.int64), np.zeros(64, np.uint64), np.full(len(words), -7)
        done, count = kernels.insert_words(words, 0, stored, 0, most, buckets, rows)
        found = np.empty(len(words), np.int64)
        kernels.find_words(words, stored, buckets, found)
        ends.append((done, count, stored[:count].tolist(), rows[:done].tolist(), found.tolist()))
    assert ends[0] == ends[1]


@given(st.lists(st.binary(max_size=18), max_size=40), st.integers(1, 20), st.integers(1, 120))
def test_both_stop_at_the_same_text_when_the_arrays_are_full(texts: list[bytes], most: int, room: int) -> None:
    offsets = frozen(np.cumsum([0, *map(len, texts)]).astype(np.int64))
    data = frozen(np.frombuffer(b"".join(texts), np.uint8).copy())
    ends = []
    for kernels in (compiled, vectorised):
        stored_offsets, stored = np.zeros(32, np.int64), np.zeros(room, np.uint8)
        buckets, rows = np.zeros(64, np.uint64), np.full(len(texts), -7)
        done, count = kernels.insert_texts(offsets, data, 0, stored_offsets, stored, 0, most, buckets, rows)
        found = np.empty(len(texts), np.int64)
        kernels.find_texts(offsets, data, stored_offsets, stored, buckets, found)
        again = np.zeros(64, np.uint64)
        kernels.index_texts(stored_offsets, stored, count, again)
        refound = np.empty(len(texts), np.int64)
        kernels.find_texts(offsets, data, stored_offsets, stored, again, refound)
        assert found.tolist() == refound.tolist()
        ends.append((done, count, stored_offsets[: count + 1].tolist(), rows[:done].tolist(), found.tolist()))
    assert ends[0] == ends[1]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-5, 5)), max_size=40), st.booleans())
def test_both_count_alike(mentions: list[tuple[int, int]], weighted: bool) -> None:
    numbers = [number for number, _ in mentions]
    added = [amount if weighted and len(mentions) != 1 else 1 for _, amount in mentions]
    rows = frozen(np.array(numbers, np.int64))
    amounts = frozen(np.array(added if weighted else [1], np.int64))
    ends = []
    for kernels in (compiled, vectorised):
        counts, seen, touched = np.zeros(10, np.int64), np.zeros(10, np.uint8), np.empty(len(rows), np.int64)
        found = kernels.count_rows(rows, amounts, counts, seen, touched)
        assert not seen.any()
        ends.append((counts.tolist(), touched[:found].tolist()))
    sums = [sum(amount for number, amount in zip(numbers, added, strict=True) if number == row) for row in range(10)]
    assert ends[0] == ends[1] == (sums, list(dict.fromkeys(numbers)))


COUNT = (
    "from elastic.operators import KeyedColumns, kernels; columns = KeyedColumns('k string', {'n': 'int64'}); "
    "print(kernels.NAME.split()[0], *columns.count('n', columns.rows_for(['a', 'b', 'a'])))"
)


WITHOUT = {
    "asked for": "import os; os.environ['ELASTIC_KERNEL'] = 'numpy'",
    "no compiler": "import sys; sys.modules['numba'] = None",
}


@pytest.mark.parametrize("why", WITHOUT)
def test_the_vectorised_kernels_are_used_on_request_or_without_a_compiler(why: str) -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", f"{WITHOUT[why]}; {COUNT}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["numpy", "0", "1"]


def test_operators_import_neither_spark_nor_pandas() -> None:
    program = (
        "import sys, elastic.operators, elastic.operators.stage_runner, elastic.operators.testing; "
        "print([name for name in ('pyspark', 'pandas', 'boto3', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"
