"""`elastic project`: a value table in the store, or a one-line error."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import storage
from elastic.__main__ import main
from elastic.control import JobJournal
from elastic.secret import application_secret
from mdp import ValueTable
from mdp.learning.matrix_files import save_matrix
from migration import Workload
from storage.journal import MigrationBegan, MigrationEnded
from tests.mdp.instances import skewed, walk

WORKLOAD = skewed(12, seed=1)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELASTIC_SECRET", "a secret of this test")
    save_matrix(walk(2, 4), tmp_path / "matrix.json")
    (tmp_path / "workload.json").write_text(WORKLOAD.to_json())
    return tmp_path


def project(place: Path, *arguments: str) -> tuple[int, str]:
    options = ["--matrix", str(place / "matrix.json"), "--store", (place / "store").as_uri(), "--name", "one"]
    done = CliRunner().invoke(main, ["project", *options, *arguments])
    return done.exit_code, done.output


def test_project_saves_a_table_and_prints_its_error_bound(place: Path) -> None:
    code, output = project(place, "--workload", str(place / "workload.json"), "--tau", "0.4")

    assert code == 0, output
    assert "exact values with errors below" in output
    table = ValueTable.load((place / "store").as_uri(), "one", secret=application_secret("a secret of this test", {}))
    assert table.process.workload == WORKLOAD
    assert table.process.tau == 0.4


def test_project_can_print_json_only(place: Path) -> None:
    code, output = project(place, "--tasks", "12", "--tau", "0.4", "--json")

    assert code == 0, output
    assert json.loads(output)["kind"] == "exact"


def test_project_can_use_the_workload_of_a_jobs_latest_migration(place: Path) -> None:
    journal = JobJournal(storage.open((place / "store").as_uri()), "words")
    for workload in (Workload.uniform(12), WORKLOAD):
        journal.append(MigrationBegan(workload=workload.to_dict()))
    journal.append(MigrationEnded(outcome="done", nodes_before=2, nodes_after=3))
    code, output = project(place, "--job", "words", "--tau", "0.4")

    assert code == 0, output
    table = ValueTable.load((place / "store").as_uri(), "one", secret=application_secret("a secret of this test", {}))
    assert table.process.workload == WORKLOAD


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "Give one of --workload"),
        (["--tasks", "12", "--job", "words"], "Give one of --workload"),
        (["--tasks", "0"], "must be at least 1"),
        (["--tasks", "12", "--gamma", "1"], "gamma"),
        (["--tasks", "3"], "one node a task"),
        (["--tasks", "7", "--tau", "0"], "Raise tau"),
        (["--job", "nobody"], "knows no workload"),
    ],
)
def test_a_failed_projection_is_explained_in_one_line(place: Path, arguments: list[str], why: str) -> None:
    code, output = project(place, *arguments)

    assert code != 0
    assert why in output
    assert "Traceback" not in output
