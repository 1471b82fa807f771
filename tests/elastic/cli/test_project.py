"""`elastic project`: a table in the store, or what is wrong in one line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import storage
from elastic.__main__ import main
from elastic.control import Journal
from elastic.secret import application_secret
from mdp import ValueTable
from mdp.learning.saving import save
from migration import Workload
from tests.mdp.instances import skewed, walk

WORKLOAD = skewed(12, seed=1)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELASTIC_SECRET", "a secret of this test")
    save(walk(2, 4), tmp_path / "matrix.json")
    (tmp_path / "workload.json").write_text(WORKLOAD.to_json())
    return tmp_path


def project(place: Path, *arguments: str) -> tuple[int, str]:
    where = ["--matrix", str(place / "matrix.json"), "--store", (place / "store").as_uri(), "--name", "one"]
    done = CliRunner().invoke(main, ["project", *where, *arguments])
    return done.exit_code, done.output


def test_it_saves_a_table_and_says_what_is_proven(place: Path) -> None:
    code, said = project(place, "--workload", str(place / "workload.json"), "--tau", "0.4")

    assert code == 0, said
    assert "none further off than" in said
    table = ValueTable.load((place / "store").as_uri(), "one", secret=application_secret("a secret of this test", {}))
    assert table.process.workload == WORKLOAD
    assert table.process.tau == 0.4


def test_it_prints_json_alone_when_asked(place: Path) -> None:
    code, said = project(place, "--tasks", "12", "--tau", "0.4", "--json")

    assert code == 0, said
    assert json.loads(said)["kind"] == "exact"


def test_it_takes_the_workload_of_a_jobs_latest_migration(place: Path) -> None:
    journal = Journal(storage.open((place / "store").as_uri()), "words")
    for workload in (Workload.uniform(12), WORKLOAD):
        journal.append("began", workload=workload.to_dict())
    journal.append("ended", outcome="done")
    code, said = project(place, "--job", "words", "--tau", "0.4")

    assert code == 0, said
    table = ValueTable.load((place / "store").as_uri(), "one", secret=application_secret("a secret of this test", {}))
    assert table.process.workload == WORKLOAD


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "Say which workload"),
        (["--tasks", "12", "--job", "words"], "Say which workload"),
        (["--tasks", "0"], "no number of tasks"),
        (["--tasks", "12", "--gamma", "1"], "gamma"),
        (["--tasks", "3"], "one node a task"),
        (["--tasks", "7", "--tau", "0"], "Raise tau"),
        (["--job", "nobody"], "knows no workload"),
    ],
)
def test_what_cannot_be_projected_is_told_in_one_line(place: Path, arguments: list[str], why: str) -> None:
    code, said = project(place, *arguments)

    assert code != 0
    assert why in said
    assert "Traceback" not in said
