"""Figures 10 and 11 of paper 002 on a running job, in small: nodes are lost, and rows are counted once nevertheless."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from elastic.cli.bench import command
from elastic.experiments.engine_job import EngineJob, WrongResults
from elastic.experiments.paper002 import engine
from elastic.experiments.paper002.engine import (
    BY_TASK,
    ENGINE_QUICK,
    HASH,
    IDEAL,
    MIXED_STANDBYS,
    NONE,
    WHOLE_NODE,
    EngineLab,
    EngineScale,
    RecoveryRow,
    ThroughputRow,
    format_recovery,
    format_throughput,
)
from elastic.experiments.paper002.engine_charts import draw_throughput
from migration import Assignment, Standbys


def test_recovery_is_measured_from_the_command_line(tmp_path: Path) -> None:
    arguments = ["paper002", "--engine", "--quick", "--only", "figure11", "--json", "--output", str(tmp_path)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["figure11"]["rows"]
    assert [row["protection"] for row in rows] == [NONE, WHOLE_NODE, BY_TASK]
    assert all(row["recovery_ms"] > 0 and row["rows_per_second"] > 0 and row["steady_ms"] > 0 for row in rows)
    assert (tmp_path / "figure11.png").stat().st_size > 1_000


def test_throughput_is_measured_with_and_without_a_lost_node() -> None:
    scale = replace(ENGINE_QUICK, strategies=(HASH, MIXED_STANDBYS), batches_per_interval=2)
    rows = engine.measure_throughput(EngineLab(scale))
    assert [(row.fluctuation, row.strategy) for row in rows] == [(1.0, HASH), (1.0, MIXED_STANDBYS)]
    assert all(row.rows_per_second > 0 and row.rows_per_second_lost > 0 for row in rows)
    draw_throughput(rows)


def test_the_first_node_is_protected_by_one_node_and_the_one_in_the_middle_by_two() -> None:
    scale = EngineScale()
    assignment = Assignment.even(scale.tasks, scale.nodes)
    placed = Standbys.place(assignment, 1).nodes_by_task

    def followers(protection: str) -> set[tuple[str, ...]]:
        victim = engine._victim(scale, protection)
        return {nodes for owner, nodes in zip(assignment.owners, placed, strict=True) if owner == victim}

    assert followers(WHOLE_NODE) == {("node-2",)}
    assert followers(BY_TASK) == {("node-2",), ("node-4",)}


def test_rows_that_are_counted_twice_end_the_measurement() -> None:
    class Sink:
        def table(self) -> pa.Table:
            return pa.table({"key": [0, 1], "count": [1, 2]})

    scale = replace(ENGINE_QUICK, words=2)
    rows = pa.table({"key": pa.array(np.array([0, 1]))})
    running = EngineJob(None, None, Sink(), None)  # type: ignore[arg-type]
    with pytest.raises(WrongResults, match="1 of 2 keys"):
        engine._check(running, scale, [rows], filled=False)


def test_keys_of_the_ideal_stream_have_equal_frequencies() -> None:
    scale = replace(ENGINE_QUICK, words=4, rows_per_batch=2_000, batches_per_interval=1, intervals=2)
    assert IDEAL in EngineScale().strategies
    for interval in engine._draw_intervals(scale, 0.0, 0.0, 0):
        counts = np.bincount(interval[0]["key"].to_numpy(), minlength=4)
        assert counts.min() > 400
    skewed = engine._draw_intervals(scale, 2.0, 0.0, 0)
    assert np.bincount(skewed[0][0]["key"].to_numpy()).max() > 1_000


def test_tables_name_the_setting_and_the_figures() -> None:
    recovery = format_recovery([RecoveryRow(10.0, NONE, 1_234.4, 500.0, 50.0, 900.0)]).splitlines()[-1]
    assert recovery.split("  ")[0] == "10 MB, no standby"
    assert recovery.split()[-4:] == ["1,234", "500", "50", "900"]
    throughput = format_throughput([ThroughputRow(0.5, HASH, 2_000.0, 1_500.0)]).splitlines()[-1]
    assert throughput.split() == ["0.5,", "hash", "2,000", "1,500", "75"]
