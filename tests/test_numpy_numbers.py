"""NumPy's whole numbers are accepted wherever Python's are, and what comes of them can be written as JSON."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

import mdp
from elastic.control import AutoscalerSettings, Decision, JobJournal, Monitor, Scaler, ScaleRequest
from elastic.errors import InvalidAutoscaling, InvalidRequest, InvalidSetting
from elastic.numbers import as_int, as_number
from elastic.operators import CountByKey
from elastic.operators.testing import OperatorTester
from elastic.settings import Settings
from elastic.spark.checks import check_counts
from migration import Assignment, InvalidAssignment, InvalidInput, Workload, plan
from migration.schedule import schedule_mini_migrations
from storage import open as open_store
from storage.state import UnitId
from tests.elastic.control.test_control import PaperCluster

KINDS = [np.int64, np.int32, np.uint8]


@pytest.mark.parametrize("number", KINDS)
def test_assignments_and_plans_are_made_of_them(number: Any) -> None:
    current = Assignment.even(number(64), number(8))
    assert current == Assignment.even(64, 8)
    assert Assignment.from_json(current.to_json()) == current
    workload = Workload.uniform(number(64))
    for strategy, knowledge in (("ssm", {}), ("consistent-hash", {"seed": number(3), "virtual_nodes": number(16)})):
        made = plan(current, number(10), workload, tau=number(1), strategy=strategy, **knowledge)
        assert json.loads(made.to_json())["tau"] == 1
        assert list(schedule_mini_migrations(made.moves, number(2), number(100)))


@pytest.mark.parametrize("number", KINDS)
def test_requests_are_made_of_them_and_carried_out(number: Any) -> None:
    cluster = PaperCluster()
    journal = JobJournal(open_store("memory:"), "job")
    scaler = Scaler(cluster, Monitor(8), journal)
    for request in (
        ScaleRequest(nodes=number(4), tasks_per_node=number(1), bytes_per_node=number(200)),
        ScaleRequest(add=number(1)),
    ):
        assert scaler.scale(request).wait(10)
    assert len(cluster.current.nodes) == 5
    assert [record["nodes_after"] for record in journal.read() if record["kind"] == "ended"] == [4, 5]


@pytest.mark.parametrize("number", KINDS)
def test_jobs_settings_and_autoscalers_take_them(number: Any) -> None:
    assert json.dumps(check_counts(number(64), number(4))) == "[64, 4]"
    decimal: Any = np.float32(1.5)
    settings = Settings(max_pending_batches=number(3), heartbeat_seconds=number(2), snapshot_seconds=decimal)
    assert settings == Settings(max_pending_batches=3, heartbeat_seconds=2, snapshot_seconds=1.5)
    assert json.loads(json.dumps(asdict(settings)))["max_pending_batches"] == 3
    asked = AutoscalerSettings.from_arguments(
        number(16), ceiling=number(8), floor=number(2), window_seconds=number(20), high=np.float32(1)
    )
    assert json.dumps([asked.floor, asked.ceiling]) == "[2, 8]"
    assert json.dumps(Decision(number(3), "why").target) == "3"
    assert json.dumps(UnitId(number(1), number(7))) == "[1, false, 7]"
    tester = OperatorTester(CountByKey(), key="k", schema="k string", tasks=number(4), nodes=number(2))
    assert tester is not None


@pytest.mark.parametrize("number", KINDS)
def test_projections_are_made_of_them(number: Any) -> None:
    matrix = mdp.learn([number(n) for n in (2, 3, 2, 3, 3)], number(2), number(3))
    assert mdp.TransitionMatrix.from_json(matrix.to_json()) == matrix
    table = mdp.project(
        Workload.uniform(8), matrix, tau=number(1), most_partitions=number(200), seed=number(1), method="exact"
    )
    assert json.dumps(dict(table.facts))


def test_other_things_are_still_refused() -> None:
    assert [as_int(value) for value in (True, 2.0, "2", None, np.float64(2), np.bool_(True))] == [None] * 6
    assert [as_number(value) for value in (True, "2", None, 1j, np.bool_(True))] == [None] * 5
    for wrong in (True, 2.5, "4", np.float64(4)):
        with pytest.raises(InvalidRequest):
            ScaleRequest(nodes=wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidSetting):
            check_counts(64, wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidSetting):
            Settings(max_pending_batches=wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidAutoscaling):
            AutoscalerSettings.from_arguments(64, ceiling=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidAssignment):
        Assignment.even(2.5, 2)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        plan(Assignment.even(8, 2), 3, Workload.uniform(8), strategy="consistent-hash", seed=np.float64(1))
