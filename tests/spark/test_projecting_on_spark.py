"""Projections on a real Spark: the same values for any number of tasks, and after any process is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from operator import floordiv
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import mdp
from elastic.__main__ import main
from mdp.approximate import train
from mdp.array_store import ObjectArrayStore
from mdp.exact import project_exactly
from mdp.learning.matrix_files import save_matrix
from mdp.process import DecisionProcess
from mdp.projection import CheckpointLocation
from mdp.spark.workers import SparkWorkers
from migration import Workload
from storage import Secret
from tests.mdp.instances import skewed, walk

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
SECRET = Secret.of("a secret of this test")
PROCESS = DecisionProcess(skewed(24, seed=3), walk(4, 7), tau=0.4)


def test_executors_compute_the_values_of_one_process_for_any_number_of_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdp.exact.sweep.BLOCK_STATES", 500)
    here = project_exactly(PROCESS)
    for tasks in (1, 5):
        monkeypatch.setattr("mdp.spark.workers._TASKS_PER_CORE", tasks)
        array_store = ObjectArrayStore(tmp_path.as_uri(), f"by-{tasks}", SECRET)
        there = project_exactly(PROCESS, workers=SparkWorkers(spark), array_store=array_store)
        assert there.sweeps == here.sweeps
        assert all((there.values[nodes] == here.values[nodes]).all() for nodes in PROCESS.nodes)


def test_training_on_executors_gives_the_values_of_one_process(spark: SparkSession) -> None:
    here, there = (
        train(PROCESS, rounds=2, samples=60, sequences=6, workers=workers) for workers in (None, SparkWorkers(spark))
    )

    boundaries = (0, 4, 9, 15, 20, 24)
    assert there.value(boundaries) == here.value(boundaries)


def test_an_error_in_an_executor_reaches_the_caller(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="ZeroDivisionError"):
        SparkWorkers(spark).map(partial(floordiv, 1), [1, 0])
    assert SparkWorkers(spark).map(partial(floordiv, 7), [2, 3]) == [3, 2]
    assert SparkWorkers(spark).map(partial(floordiv, 7), []) == []


@pytest.mark.long
def test_a_submitted_job_that_is_killed_resumes_and_saves_its_table(tmp_path: Path) -> None:
    """By spark-submit, as on any cluster; killed with all its processes in the middle of a sweep."""
    store, environment = (tmp_path / "store").as_uri(), {**os.environ, "ELASTIC_SECRET": "a secret of this test"}
    (tmp_path / "workload.json").write_text(Workload.uniform(48).to_json())
    save_matrix(walk(6, 10), tmp_path / "matrix.json")
    command = [
        *(str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]"),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"),
        *(str(ROOT / "mdp/spark/project_job.py"), "--matrix", str(tmp_path / "matrix.json")),
        *("--workload", str(tmp_path / "workload.json"), "--store", store, "--name", "submitted", "--error", "0.004"),
    ]
    environment |= {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    killed = subprocess.Popen(command, env=environment, start_new_session=True)  # noqa: S603
    try:
        _wait_for_blocks(tmp_path / "store" / "projections" / "submitted")
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    finished = subprocess.run([*command, "--resume"], env=environment, capture_output=True, text=True, timeout=300)  # noqa: S603

    assert finished.returncode == 0, finished.stderr[-2000:]
    assert "saved as tables/submitted.table" in finished.stdout
    whole = mdp.project(Workload.uniform(48), walk(6, 10), error=0.004)
    loaded = mdp.ValueTable.load(store, "submitted", secret=SECRET)
    for boundaries in [(0, 8, 16, 24, 32, 40, 48), (0, 7, 14, 21, 28, 35, 42, 48)]:
        assert loaded.value(boundaries) == whole.value(boundaries)
    assert not list((tmp_path / "store" / "projections").rglob("*.arrays"))


def _wait_for_blocks(folder: Path) -> None:
    """Wait until some blocks of a sweep after the first are stored."""
    deadline = time.monotonic() + 120
    while len([path for path in folder.glob("sweep-[1-9]*/*") if path.name != "input.arrays"]) < 2:
        assert time.monotonic() < deadline, sorted(folder.rglob("*"))
        time.sleep(0.02)


@pytest.mark.usefixtures("spark_of_programs")
def test_the_command_line_projects_on_spark_and_a_plan_uses_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = (tmp_path / "store").as_uri()
    save_matrix(walk(3, 5), tmp_path / "matrix.json")
    monkeypatch.setenv("ELASTIC_SECRET", "a secret of this test")
    arguments = ["--matrix", str(tmp_path / "matrix.json"), "--tasks", "24", "--store", store, "--name", "by-command"]
    done = CliRunner().invoke(main, ["project", *arguments, "--master", "local[2]", "--json"])

    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["kind"] == "exact"
    assert facts["error"] <= 0.002
    table = mdp.ValueTable.load(store, "by-command", secret=SECRET)
    assert table.value((0, 6, 12, 18, 24)) > 0


def test_a_remote_master_needs_a_checkpoint_location() -> None:
    class Elsewhere:
        class sparkContext:  # noqa: N801 - Spark's name
            master = "spark://somewhere:7077"

    with pytest.raises(mdp.InvalidProjection, match="Pass checkpoint="):
        mdp.project(Workload.uniform(8), walk(2, 3), spark=Elsewhere())  # type: ignore[arg-type]
    assert CheckpointLocation("file:///x", "y", SECRET).settings == {}
