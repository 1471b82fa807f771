"""A step in a child process: the rows and timers that kill it are quarantined, all others are handled in order."""

import json

import pyarrow as pa
import pytest

from elastic.errors import PoisonedStep
from elastic.node.isolation import Isolation
from elastic.operators.context import Moment
from elastic.operators.stages import build_runners, build_stages
from elastic.results import Description, StageDescription
from storage.state import UnitId
from tests.elastic.driver.fatal_operators import CRASH, RAISE, ClosedDoor, FatalHistory
from tests.elastic.driver.local_job import ROWS

MOMENT = Moment(UnitId(0, 0), 7, 0, timestamp_ms=20)


def rows_of(*values: int) -> pa.Table:
    return pa.Table.from_pylist([{"key": "k", "value": value} for value in values], schema=ROWS)


def pipeline_of(operator: FatalHistory | ClosedDoor) -> Description:
    [stage] = build_stages(operator, "key")
    return Description((StageDescription(stage.name, stage.key, stage.operator, ROWS),), 1, "1")


def test_fatal_rows_and_timers_are_quarantined_and_the_order_of_the_others_is_kept() -> None:
    [runner] = build_runners(build_stages(FatalHistory(), "key"), ROWS, "skip")
    before = runner.new_state()
    runner.step(before, [rows_of(5)], Moment(UnitId(0, 0), 6, 0, timestamp_ms=1))
    slices = [rows_of(11, CRASH, 12), rows_of(13, RAISE, 14, 50)]
    after, output = Isolation("node-1", pipeline_of(FatalHistory()), 0.0)(runner, before, slices, MOMENT)
    assert after.value == [5, 11, 12, 13, 14, 50, -5, -11, -12, -14]
    assert len(after.timers) == 1
    assert before.value == [5]
    assert output.sink is not None
    assert output.sink["value"].to_pylist() == [11, 12, 13, 14, 50, -5, -11, -12, -14]
    assert output.quarantined is not None
    aside = [(json.loads(row["row"]), row["error"]) for row in output.quarantined.to_pylist()]
    assert [row.get("value", row.get("key")) for row, _ in aside] == [CRASH, RAISE, 13]
    assert "ended with exit code 0" in aside[0][1]
    assert "ValueError: no such value" in aside[1][1]
    assert "was killed by signal SIGABRT" in aside[2][1]


def test_a_child_that_cannot_even_open_the_operator_says_why(tmp_path: object) -> None:
    operator = ClosedDoor(tmp_path)  # type: ignore[arg-type]
    [runner] = build_runners(build_stages(operator, "key"), ROWS, "skip")
    with pytest.raises(OSError, match="there is no licence"):
        Isolation("node-1", pipeline_of(operator), 0.0)(runner, runner.new_state(), [rows_of(1)], MOMENT)


def test_a_child_that_dies_itself_makes_the_step_poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    [runner] = build_runners(build_stages(FatalHistory(), "key"), ROWS, "skip")
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(PoisonedStep, match="ended with exit code 1"):
        Isolation("node-1", pipeline_of(FatalHistory()), 0.0)(runner, runner.new_state(), [rows_of(1)], MOMENT)
