"""An operator that is called for rows of one cost key at a time, as far as that costs little."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from elastic.errors import (
    CombineDropsCostKey,
    CombineFailed,
    InvalidJob,
    InvalidOutput,
    NotAnOperator,
    StatefulShuffle,
    UnknownColumn,
)
from elastic.operators import Context, CountByKey, KeyedOperator, Operator, Stage, StatelessOperator, partial, stateless
from elastic.operators.context import Moment
from elastic.operators.measured import mark_group_rows
from elastic.operators.stage_runner import StageRunner, StepOutput
from elastic.operators.stages import build_runners, build_stages
from elastic.operators.testing import Crash, OperatorTester, Scale
from elastic.routing import hash_keys
from storage.state import UnitId

SCHEMA = pa.schema([("kind", pa.string()), ("id", pa.int64())])


class Clock:
    """Every row takes a second; a slow one takes ten."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Enrich(StatelessOperator):
    output_schema = "kind string, id long, drawn long"
    clock = Clock()

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def handle_rows(self, rows: pa.Table, context: Context) -> Any:
        assert rows.schema.metadata is None
        kinds = rows["kind"].to_pylist()
        self.calls.append(kinds)
        self.clock.now += sum(10.0 if kind == "slow" else 1.0 for kind in kinds)
        return [{**row, "drawn": int(context.random.integers(1 << 40))} for row in rows.to_pylist()]


def runner_of(monkeypatch: pytest.MonkeyPatch, **options: Any) -> StageRunner:
    stage = Stage(Enrich(), **{"grouping": "shuffle", "cost_key": "kind", **options})
    [runner] = build_runners(build_stages(stage, ()), SCHEMA)
    if runner.is_measured:
        monkeypatch.setattr(runner._caller, "_clock", Enrich.clock)
    return runner


def step(runner: StageRunner, kinds: list[str], group_rows: int, batch: int = 0) -> StepOutput:
    rows = pa.table({"kind": kinds, "id": range(len(kinds))}, schema=SCHEMA)
    return runner.step(runner.new_state(), [mark_group_rows(rows, group_rows)], Moment(UnitId(0, 3), batch, 0, 0))


def hash_of(kind: str) -> int:
    return int(hash_keys([pa.array([kind])])[0])


def ids(output: StepOutput) -> list[int]:
    assert output.sink is not None
    return sorted(output.sink["id"].to_pylist())


def test_each_cost_key_gets_a_call_and_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of(monkeypatch)
    output = step(runner, ["a", "slow", "a", "b", "slow"], group_rows=1)
    assert sorted(runner.operator.calls) == [["a", "a"], ["b"], ["slow", "slow"]]  # type: ignore[attr-defined]
    times = output.cost_times
    assert times is not None
    found = {key: (rows, seconds) for key, rows, seconds in zip(*(one.tolist() for one in times), strict=True)}
    assert found == {hash_of("a"): (2, 2.0), hash_of("slow"): (2, 20.0), hash_of("b"): (1, 1.0)}
    assert ids(output) == [0, 1, 2, 3, 4]
    assert output.rows == 5


def test_rows_that_are_not_worth_a_call_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of(monkeypatch)
    kinds = [f"kind-{number % 20}" for number in range(40)]
    output = step(runner, kinds, group_rows=10)
    calls = runner.operator.calls  # type: ignore[attr-defined]
    assert len(calls) in (5, 6)
    assert [len(set(call)) for call in calls[:-1]] == [1] * (len(calls) - 1)
    assert len(calls[-1]) == 40 - 2 * (len(calls) - 1)
    assert output.cost_times is not None
    assert output.cost_times.rows.tolist() == [2] * (len(calls) - 1)
    assert ids(output) == list(range(40))


def test_few_rows_are_measured_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of(monkeypatch)
    outputs = [step(runner, ["a", "b"], group_rows=10, batch=batch) for batch in range(200)]
    measured = [output for output in outputs if output.cost_times is not None]
    assert 20 < len(measured) < 60  # a fifth
    assert all(ids(output) == [0, 1] for output in outputs)


def test_cost_keys_are_drawn_by_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of(monkeypatch)
    outputs = [step(runner, [*["often"] * 9, "seldom"], group_rows=10, batch=batch) for batch in range(100)]
    drawn = [key for output in outputs if output.cost_times is not None for key in output.cost_times.hashes.tolist()]
    assert len(drawn) == 100
    assert 80 < drawn.count(hash_of("often")) < 100


def test_a_replay_makes_the_same_calls_and_draws_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [f"kind-{number % 7}" for number in range(50)]
    runner = runner_of(monkeypatch)
    first, again = (step(runner, kinds, group_rows=20, batch=9).sink for _ in range(2))
    assert first is not None
    assert first.equals(again)
    assert len(set(first["drawn"].to_pylist())) == 50  # calls of one step draw different numbers


def test_only_the_first_rows_of_many_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elastic.operators.measured._MOST_ROWS", 4)
    runner = runner_of(monkeypatch)
    output = step(runner, ["a", "b", "a", "b", "a", "c"], group_rows=1)
    assert runner.operator.calls == [["a", "a"], ["b", "b"], ["a", "c"]] or runner.operator.calls == [  # type: ignore[attr-defined]
        ["b", "b"],
        ["a", "a"],
        ["a", "c"],
    ]
    assert ids(output) == list(range(6))


def test_without_a_cost_key_all_rows_are_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of(monkeypatch, cost_key=())
    output = step(runner, ["a", "slow"], group_rows=10)
    assert output.cost_times is not None
    assert [one.tolist() for one in output.cost_times] == [[0], [2], [11.0]]


@pytest.mark.parametrize(("scheduler", "group_rows"), [("round-robin", 1), ("posg", 0)])
def test_rows_that_are_not_measured_are_one_call(
    monkeypatch: pytest.MonkeyPatch, scheduler: str, group_rows: int
) -> None:
    runner = runner_of(monkeypatch, scheduler=scheduler)
    assert runner.is_measured is (scheduler == "posg")
    if scheduler == "round-robin":
        monkeypatch.setattr(
            Enrich, "handle_rows", lambda _self, rows, _context: rows.append_column("drawn", rows["id"])
        )
    output = step(runner, ["a", "b"], group_rows)
    assert output.cost_times is None
    assert ids(output) == [0, 1]


def test_the_tester_shuffles_and_replays() -> None:
    doubled = stateless(lambda rows: rows.append_column("twice", rows["id"]), "kind string, id long, twice long")
    tester = OperatorTester(Stage(doubled, grouping="shuffle", scheduler="posg-batch"), key="kind", nodes=3)
    rows = [{"kind": "a", "id": number} for number in range(20)]
    emitted = tester.run([rows, Scale(2), rows, Crash("node-1")])
    assert sorted(row["twice"] for row in emitted) == sorted([*range(20), *range(20)])


class Stateful(Operator):
    output_schema = "id long"


class KeyedStateless(KeyedOperator):
    output_schema = "id long"
    stateless = True


class StatelessByName(StatelessOperator):
    """Says that it has no state, and has one."""

    output_schema = "id long"

    def initial_state(self) -> dict[str, int]:
        return {}


@pytest.mark.parametrize("operator", [Stateful(), KeyedStateless(), CountByKey(), StatelessByName()])
def test_a_stateful_operator_cannot_be_shuffled(operator: Operator) -> None:
    with pytest.raises(StatefulShuffle, match="may have a state") as refused:
        Stage(operator, "id", "one", grouping="shuffle")
    assert (refused.value.stage, refused.value.operator) == ("one", type(operator).__name__)


def test_partial_stages_cannot_be_shuffled_and_classes_are_no_operators() -> None:
    first, _ = partial(CountByKey())
    with pytest.raises(InvalidJob, match="'shuffle'"):
        Stage(first.operator, "kind", grouping="shuffle")
    with pytest.raises(NotAnOperator):
        build_stages(Stage(Enrich, "kind"), "kind")  # type: ignore[arg-type]
    with pytest.raises(NotAnOperator):
        Stage(Enrich, "kind", grouping="shuffle")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scheduler": ["posg"]}, "unknown scheduler"),
        ({"grouping": ["shuffle"]}, "unknown grouping"),
        ({"cost_key": 1}, "named by a string"),
        ({"cost_key": ["kind", None]}, "named by a string"),
        ({"key": None}, "named by a string"),
    ],
)
def test_options_of_another_type_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidJob, match=message):
        Stage(Enrich(), **{"grouping": "shuffle", **options})


@pytest.mark.parametrize("scheduler", ["round-robin", "posg"])
def test_a_cost_key_that_is_no_column_is_refused(scheduler: str) -> None:
    stages = build_stages(Stage(Enrich(), grouping="shuffle", scheduler=scheduler, cost_key="price"), "kind")
    with pytest.raises(UnknownColumn, match="price"):
        build_runners(stages, SCHEMA)


def test_a_key_that_is_no_column_is_refused_too() -> None:
    with pytest.raises(UnknownColumn, match="price"):
        build_runners(build_stages(Stage(Enrich(), grouping="shuffle", cost_key="kind"), "price"), SCHEMA)


def test_only_a_shuffled_stage_has_a_cost_key_and_only_it_needs_no_key() -> None:
    with pytest.raises(InvalidJob, match="has a cost key, but is grouped by 'hash'"):
        Stage(Enrich(), "kind", cost_key="id")
    with pytest.raises(InvalidJob, match="the key has no columns"):
        build_runners(build_stages(Enrich(), ()), SCHEMA)
    [runner] = build_runners(build_stages(Stage(Enrich(), grouping="shuffle"), ()), SCHEMA)
    assert runner.hash_rows(SCHEMA.empty_table().cast(SCHEMA)).tolist() == []


def test_the_hash_of_a_row_is_that_of_its_cost_key() -> None:
    [runner] = build_runners(build_stages(Stage(Enrich(), "id", grouping="shuffle", cost_key="kind"), ()), SCHEMA)
    rows = pa.table({"kind": ["a", "b"], "id": [1, 1]}, schema=SCHEMA)
    assert runner.hash_rows(rows).tolist() == hash_keys([rows["kind"]]).tolist()
    assert runner.key == ("id",)
    assert np.all(build_runners(build_stages(Stage(Enrich(), grouping="shuffle"), ()), SCHEMA)[0].hash_rows(rows) == 0)


class Combining(Enrich):
    """Combines rows with a function of a test."""

    def __init__(self, combine: Callable[[pa.Table], Any]) -> None:
        super().__init__()
        self._combine = combine

    def combine(self, rows: pa.Table) -> pa.Table:
        return self._combine(rows)


def combining(combine: Callable[[pa.Table], Any], **options: Any) -> StageRunner:
    stage = Stage(Combining(combine), name="enrich", grouping="shuffle", **{"cost_key": "kind", **options})
    return build_runners(build_stages(stage, ()), SCHEMA)[0]


@pytest.mark.parametrize("scheduler", ["round-robin", "posg", "posg-batch"])
@pytest.mark.parametrize(
    ("combine", "reason"),
    [
        (lambda rows: rows.drop_columns(["kind"]), "did not keep the cost key column 'kind'"),
        (lambda rows: rows.set_column(0, "kind", rows["id"]), "did not keep the cost key column 'kind'"),
        (lambda _rows: None, "returned a NoneType"),
        (lambda rows: rows["kind"][0], "fails for a table without rows"),
    ],
)
def test_a_combine_that_drops_the_cost_key_is_refused(
    scheduler: str, combine: Callable[[pa.Table], Any], reason: str
) -> None:
    with pytest.raises(CombineDropsCostKey, match=reason) as refused:
        combining(combine, scheduler=scheduler)
    assert (refused.value.stage, refused.value.cost_key) == ("enrich", ("kind",))


def test_a_combine_that_keeps_the_cost_key_or_needs_none_is_taken() -> None:
    assert combining(lambda rows: rows.slice(0, 1)).combiner is not None
    assert combining(lambda rows: rows.drop_columns(["kind"]), cost_key=()).combiner is not None
    assert combining(lambda rows: rows.drop_columns(["kind"]), cost_key=(), key="id").combiner is not None


def test_a_combine_that_drops_the_cost_key_of_some_rows_is_an_error_of_the_operator() -> None:
    runner = combining(lambda rows: rows.drop_columns(["kind"]) if rows.num_rows else rows)
    with pytest.raises(InvalidOutput, match="did not keep the cost key column 'kind'"):
        runner.combine(pa.table({"kind": ["a"], "id": [1]}, schema=SCHEMA))
    runner = combining(lambda rows: 1 / 0 if rows.num_rows else rows)
    with pytest.raises(CombineFailed):
        runner.combine(pa.table({"kind": ["a"], "id": [1]}, schema=SCHEMA))
