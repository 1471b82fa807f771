"""Rows that make an operator fail are quarantined; all others take effect as if those had never arrived."""

import json
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from elastic.operators import Context, KeyedColumns, KeyedOperator, Operator, State, Timer, ValueState
from elastic.operators.testing import Crash, OperatorTester, Scale


class Total(Operator):
    """Changes its state and yields, then stumbles over negative numbers; yields nonsense for zero."""

    output_schema = "total long"

    def initial_state(self) -> dict[str, list[int]]:
        return {"seen": []}

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Iterator[Any]:
        numbers = rows["n"].to_pylist()
        state.value["seen"] += numbers
        context.set_timer(0, "processing", str(sum(numbers)))
        for number in numbers:
            if number < 0:
                raise ValueError(f"negative {number}")
            yield {"total": number} if number else {"total": "nothing"}

    def handle_timer(self, timer: Timer, _state: State, _context: Context) -> None:
        assert "-" not in timer.name


class TotalByKey(KeyedOperator):
    """The same, key by key."""

    output_schema = "total long"

    def initial_state(self) -> list[int]:
        return []

    def handle_key(self, _key: Any, rows: Any, state: ValueState, _context: Context) -> Iterator[Any]:
        seen = state.get()
        state.update(seen)
        for row in rows:
            seen.append(row["n"])
            if row["n"] < 0:
                raise ValueError(f"negative {row['n']}")
        yield {"total": sum(seen)} if sum(seen) else {"total": "nothing"}


class Columns(Operator):
    """State in keyed columns, silent, and picky."""

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("k string", {"total": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> None:
        numbers = rows["n"].to_pylist()
        for key, number in zip(state.value.rows_for(rows), numbers, strict=True):
            state.value.column("total")[key] += number
        if min(numbers) <= 0:
            raise ValueError("too small")


batches = st.lists(
    st.lists(st.builds(lambda k, n: {"k": k, "n": n}, st.sampled_from("abc"), st.integers(-2, 9)), max_size=10),
    min_size=1,
    max_size=4,
)


def skipping_tester(operator: Operator, **options: Any) -> OperatorTester:
    return OperatorTester(operator, key="k", schema="k string, n long", tasks=3, on_error="skip", **options)


def read_quarantined(tester: OperatorTester) -> list[Any]:
    return [json.loads(entry["row"]) for entry in tester.quarantined]


def canonical(rows: list[Any]) -> list[str]:
    return sorted(map(str, rows))


@given(batches)
def test_a_batch_is_halved_until_the_failing_rows_are_alone(scenario: list[list[dict[str, Any]]]) -> None:
    made = skipping_tester(Total())
    emitted = made.run(scenario)
    rows = [row for batch in scenario for row in batch]
    good = [row for row in rows if row["n"] > 0]
    assert sorted(row["total"] for row in emitted) == sorted(row["n"] for row in good)
    assert canonical(read_quarantined(made)) == canonical([row for row in rows if row["n"] <= 0])
    world = made._cluster
    assert world is not None
    seen = [number for unit in world.routing.units(0) for number in world.state(unit).value["seen"]]
    assert sorted(seen) == sorted(row["n"] for row in good)


@given(batches)
def test_keyed_columns_are_restored_too(scenario: list[list[dict[str, Any]]]) -> None:
    made = skipping_tester(Columns())
    made.run(scenario)
    good = [row for batch in scenario for row in batch if row["n"] > 0]
    for key in {row["k"] for row in good}:
        assert made.state(key) == {"total": sum(row["n"] for row in good if row["k"] == key)}


@given(batches)
def test_a_failing_key_keeps_its_value_and_others_continue(scenario: list[list[dict[str, Any]]]) -> None:
    made = skipping_tester(TotalByKey())
    made.run(scenario)
    expected: dict[str, list[int]] = {}
    aside = []
    for batch in scenario:
        for key in {row["k"] for row in batch}:
            rows = [row for row in batch if row["k"] == key]
            numbers = [row["n"] for row in rows]
            if min(numbers) < 0 or sum(expected.get(key, []) + numbers) == 0:
                aside += rows
            else:
                expected[key] = expected.get(key, []) + numbers
    assert {key: made.state(key) for key in "abc" if made.state(key)} == {k: v for k, v in expected.items() if v}
    assert canonical(read_quarantined(made)) == canonical(aside)


@pytest.mark.parametrize("operator", [Total(), TotalByKey(), Columns()])
def test_the_same_rows_are_quarantined_after_crashes(operator: Operator) -> None:
    scenario = [
        [{"k": key, "n": n} for key, n in zip("abcab", numbers, strict=True)]
        for numbers in ([1, -1, 2, 3, 4], [0, 1, -2, 5, 6])
    ]
    calm, stormy = skipping_tester(operator), skipping_tester(operator, snapshot_every=3)
    assert calm.run(scenario * 2) == stormy.run(
        [*scenario, Crash("node-1"), Scale(3), scenario[0], Crash("node-2"), scenario[1], Crash("node-3")]
    )
    assert read_quarantined(calm) == read_quarantined(stormy)


def test_the_error_is_kept_with_the_row() -> None:
    made = skipping_tester(TotalByKey())
    made.run([[{"k": "a", "n": -1}]])
    (entry,) = made.quarantined
    assert entry["row"] == '{"k": "a", "n": -1}'
    assert "ValueError: negative -1" in entry["error"]
    assert "in handle_key" in entry["error"]


def test_a_failing_timer_is_quarantined_by_name() -> None:
    class Broken(KeyedOperator):
        def handle_key(self, _key: Any, _rows: Any, state: ValueState, context: Context) -> None:
            state.update(1)
            context.set_timer(0, "processing", "boom")

        def handle_expired(self, _key: Any, _timer: Timer, state: ValueState, _context: Context) -> None:
            state.clear()
            raise KeyError("missing")

    made = skipping_tester(Broken())
    made.run([[{"k": "a", "n": 1}]])
    assert read_quarantined(made) == [{"timer": "boom", "kind": "processing", "at_ms": 0, "key": "a"}]
    assert made.state("a") == 1
