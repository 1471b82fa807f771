"""Paper 004 on a running job, in small: rows are done once, and tables and charts have all schedulers."""

import json
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from elastic.cli.bench import command
from elastic.experiments.paper004.engine import (
    ENGINE_QUICK,
    CompletionRow,
    EngineLab,
    EngineScale,
    format_completion,
    measure_overhead,
)
from elastic.routing.shuffle import SCHEDULERS

TINY = replace(ENGINE_QUICK, batches=4, warm_up_batches=1, rows_per_batch=8, most_spin_rows=80, spin_rows_per_batch=20)


def test_the_interval_leaves_nodes_the_share_of_time_that_the_scale_says() -> None:
    scale = EngineScale()
    work = scale.rows_per_batch * scale.mean_seconds
    assert round(work / (scale.nodes * scale.interval_seconds), 6) == scale.load


def test_overhead_is_measured_for_every_scheduler() -> None:
    rows = measure_overhead(EngineLab(TINY))
    assert [row.scheduler for row in rows] == [*SCHEDULERS]
    assert rows[0].overhead_percent == 0
    assert all(row.processor_microseconds > 0 for row in rows)


def test_a_table_has_speed_ups() -> None:
    row = CompletionRow("slow branch", "posg", 100.4, 200.6, 120.0, 1.251, 1.5, 1.1)
    assert format_completion([row]).splitlines()[-1].split() == [
        *("slow", "branch", "posg", "100", "201", "120", "1.25", "1.50", "1.10")
    ]


def test_completion_is_measured_from_the_command_line(tmp_path: Path) -> None:
    arguments = ["paper004", "--engine", "--quick", "--only", "completion", "--json", "--output", str(tmp_path)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["completion"]["rows"]
    assert [(row["workload"], row["scheduler"]) for row in rows] == [
        (workload, scheduler) for workload in ("slow branch", "equal costs") for scheduler in SCHEDULERS
    ]
    assert all(0 < row["median_ms"] <= row["p99_ms"] for row in rows)
    assert (tmp_path / "completion.png").stat().st_size > 1_000


def test_names_that_need_the_option_are_refused_without_it() -> None:
    done = CliRunner().invoke(command, ["paper004", "--only", "completion"])
    assert done.exit_code == 2
    assert "completion: run with --engine." in done.output
    done = CliRunner().invoke(command, ["paper001", "--engine", "--only", "table1"])
    assert "table1: run without --engine." in done.output
