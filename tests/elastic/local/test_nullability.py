"""Rows whose columns cannot be null by what Spark knows of one batch, in jobs where they may be, and the reverse."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from elastic.local.run import local_run
from elastic.operators import (
    Aggregate,
    CountByKey,
    DropDuplicates,
    Enrich,
    Side,
    TopK,
    partial,
    session_window,
    window,
)
from elastic.operators import functions as F  # noqa: N812 - as users of Spark name it
from elastic.operators.columns import RowStore
from elastic.operators.combiner import Combiner
from elastic.operators.library import _SAMPLE_ROWS
from elastic.operators.rows import concat_rows, fill_new_columns, match_nullability
from elastic.operators.stage_runner import _table
from storage import Secret

MAYBE = pa.schema([("word", pa.string()), ("n", pa.int64()), ("input", pa.string())])
NEVER = pa.schema([field.with_nullable(False) for field in MAYBE])
FREQUENT = ["a", "b"] * 500
UNIQUE = [f"word {number}" for number in range(1_000)]

OPERATORS = {
    "count": CountByKey,
    "partial count": lambda: partial(CountByKey()),
    "aggregate": lambda: Aggregate(total=F.sum("n"), rows=F.count()),
    "windows": lambda: Aggregate(rows=F.count()).over(window("1 second"), time="n"),
    "sessions": lambda: Aggregate(rows=F.count()).over(session_window("1 second"), time="n"),
    "duplicates": lambda: DropDuplicates("n"),
    "top k": lambda: TopK(2, by="n"),
    "enrichment": lambda: Enrich(Side("stream", columns=["n"]), table=Side("table", columns={"seen": "n"})),
}


def rows(words: list[str], schema: pa.Schema) -> pa.Table:
    sides = ["stream", "table"] * (len(words) // 2)
    return pa.table({"word": words, "n": range(len(words)), "input": sides}, schema=schema)


def emitted(batches: list[pa.Table], operator: Any, schema: pa.Schema, **options: Any) -> Counter[str]:
    """Run the batches in chunks of one table each; return the collected results, and close the job."""
    settings = {"chunk_bytes": 1, "snapshot_seconds": 0.2}
    with local_run(
        batches, key="word", operator=operator, tasks=2, nodes=2, schema=schema, settings=settings, **options
    ) as job:
        job.process_all_available()
        found = job.collected()
        return Counter(map(repr, found.drop_columns([name for name in found.column_names if "_" in name]).to_pylist()))


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
@pytest.mark.parametrize("bound", [MAYBE, NEVER], ids=["maybe", "never"])
def test_results_do_not_depend_on_whether_columns_of_a_batch_may_be_null(operator: Any, bound: pa.Schema) -> None:
    words = [FREQUENT, UNIQUE, [*FREQUENT, *UNIQUE]]
    results = [emitted([rows(one, schema) for one in words], operator(), bound) for schema in (MAYBE, NEVER)]
    assert results[0] == results[1]


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
@pytest.mark.parametrize(("before", "after"), [(MAYBE, NEVER), (NEVER, MAYBE)], ids=["to never", "to maybe"])
def test_a_restart_may_change_whether_columns_may_be_null(
    operator: Any, before: pa.Schema, after: pa.Schema, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"store": tmp_path.as_uri(), "secret": Secret.of(b"a secret of this test, 32 bytes.")}
    first = [rows(FREQUENT, before), rows(UNIQUE, before)]
    emitted(first, operator(), before, **options)
    both = [*UNIQUE, *FREQUENT]
    second = [*first, rows(FREQUENT, after), rows(both, after)]
    unchanged = emitted([rows(one, MAYBE) for one in (FREQUENT, UNIQUE, FREQUENT, both)], operator(), MAYBE)
    assert emitted(second, operator(), after, **options) == unchanged


def test_frequent_and_unique_words_are_counted_in_one_batch() -> None:
    """Senders combine rows only where keys repeat, so what they send has the columns of two kinds of tables."""
    unique = [f"word {number}" for number in range(_SAMPLE_ROWS + 1_000)]
    both = pa.Table.from_batches([rows(some, NEVER).combine_chunks().to_batches()[0] for some in (FREQUENT, unique)])
    with local_run(
        [both], key="word", operator=CountByKey(), tasks=1, nodes=1, schema=MAYBE, settings={"chunk_bytes": 1}
    ) as job:
        job.process_all_available()
        assert (job.state("a"), job.state(unique[-1])) == (500, 1)


@pytest.mark.parametrize("bound", [MAYBE, NEVER], ids=["maybe", "never"])
def test_combined_rows_have_the_same_columns_whether_keys_repeat_or_not(bound: pa.Schema) -> None:
    combine = Combiner(CountByKey().bind(("word",), bound), "count")
    unique = [f"word {number}" for number in range(_SAMPLE_ROWS + 1_000)]
    first, *others = [combine(rows(words, schema)).schema for words in (FREQUENT, unique) for schema in (MAYBE, NEVER)]
    assert others == [first] * 3


def test_rows_that_were_logged_have_the_columns_of_the_operator() -> None:
    assert fill_new_columns(rows(FREQUENT, NEVER), MAYBE).schema == MAYBE
    assert fill_new_columns(rows(FREQUENT, MAYBE), NEVER).schema == NEVER


def test_rows_that_an_earlier_release_logged_are_joined() -> None:
    joined = concat_rows([rows(FREQUENT, NEVER), rows(UNIQUE, MAYBE), rows(UNIQUE, NEVER)])
    assert joined.schema == MAYBE
    assert joined["word"].to_pylist() == [*FREQUENT, *UNIQUE, *UNIQUE]
    assert concat_rows([rows(FREQUENT, NEVER)] * 2).schema == NEVER


def test_slices_of_a_unit_are_joined_though_columns_of_some_may_be_null() -> None:
    assert _table([rows(FREQUENT, NEVER), rows(UNIQUE, MAYBE).to_batches()[0]]).num_rows == 2_000


@pytest.mark.parametrize("few", [1_000, 10])
def test_stored_rows_and_new_ones_are_kept_together(few: int) -> None:
    store = RowStore(NEVER)
    store.append(rows(UNIQUE, NEVER), np.zeros(1_000, np.int64))
    store.append(rows(FREQUENT[:few], MAYBE), np.ones(few, np.int64))
    assert store.take(np.array([0, 1_000]))["word"].to_pylist() == ["word 0", "a"]
    assert store.to_table().num_rows == 1_000 + few


def test_columns_that_a_schema_does_not_have_stay_as_they_are() -> None:
    table = rows(FREQUENT, NEVER)
    matched = match_nullability(table, pa.schema([("word", pa.string())]))
    assert [field.nullable for field in matched.schema] == [True, False, False]
    assert match_nullability(table, NEVER) is table
