"""Combined rows give the same results as all rows."""

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from elastic.errors import CombineFailed, InvalidOutput
from elastic.operators import CountByKey, Operator, library, stateless
from elastic.operators.stage_runner import StageRunner
from elastic.operators.testing import OperatorTester

WORDS = pa.schema([("word", pa.string()), ("n", pa.int64())])


def runner_of(operator: Operator) -> StageRunner:
    return StageRunner(operator, key=["word"], input_schema=WORDS, name="counts")


def table_of(words: list[str | None]) -> pa.Table:
    return pa.table({"word": words, "n": range(len(words))}, schema=WORDS)


@given(st.lists(st.none() | st.sampled_from(["a", "b", "c", "d"])), st.sampled_from([1, 2, 100]))
def test_combined_rows_hold_every_key_with_its_count_whatever_the_sample_shows(
    words: list[str | None], sample: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "_SAMPLE_ROWS", sample)
        combined = runner_of(CountByKey()).combine(table_of(words))
    counts: Counter[str | None] = Counter()
    for row in combined.to_pylist():
        counts[row["word"]] += row["count"]
    assert counts == Counter(words)
    assert combined.column_names == ["word", "count"]


def test_repeated_keys_are_combined_and_mostly_different_keys_are_not() -> None:
    runner = runner_of(CountByKey())
    repeated = runner.combine(table_of([f"word {n % 100}" for n in range(200_000)]))
    assert repeated.num_rows == 100
    different = runner.combine(table_of([f"word {n}" for n in range(200_000)]))
    assert different.num_rows == 200_000


def test_a_key_in_several_parts_of_a_batch_is_emitted_once() -> None:
    tester = OperatorTester([stateless(lambda rows: rows, "word string"), CountByKey()], key="word")
    emitted = tester.run([[{"word": "a"}, {"word": "b"}, {"word": "a"}]])
    assert sorted(emitted, key=str) == [{"word": "a", "count": 2}, {"word": "b", "count": 1}]


def test_an_operator_without_combine_gets_its_rows_unchanged() -> None:
    runner = runner_of(stateless(lambda rows: rows, WORDS))
    rows = table_of(["a", "a"])
    assert runner.combiner is None
    assert runner.combine(rows) is rows


class Careless(Operator):
    def __init__(self, given: Any) -> None:
        self._given = given

    def combine(self, rows: pa.Table) -> pa.Table:
        return self._given(rows)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (lambda rows: rows.drop_columns(["word"]), "key column 'word'"),
        (lambda rows: rows.set_column(0, "word", pa.array([1] * rows.num_rows)), "key column 'word'"),
        (lambda rows: rows.to_pylist(), "returned a list"),
    ],
)
def test_combined_rows_without_their_key_are_refused(given: Any, why: str) -> None:
    with pytest.raises(InvalidOutput, match=why):
        runner_of(Careless(given)).combine(table_of(["a"]))


def test_a_combine_that_raises_is_reported_with_its_traceback() -> None:
    with pytest.raises(CombineFailed, match="ZeroDivisionError") as failed:
        runner_of(Careless(lambda _: 1 // 0)).combine(table_of(["a"]))
    assert failed.value.operator == "counts"
