"""The command line against a job that it runs itself, on a real Spark."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from elastic.__main__ import main
from tests.spark.jobs import until

pytestmark = pytest.mark.spark
_SECONDS = 120


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ELASTIC_SECRET", "a secret of this test")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("hello world hello\n")
    return tmp_path


def begin(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "elastic", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603


def wait_for(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    with process:
        output, errors = process.communicate(timeout=_SECONDS)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def elastic(*arguments: str) -> Result:
    """Run a command in this process, which spares the start of another."""
    return CliRunner().invoke(main, arguments)


def ask(*arguments: str) -> Any:
    """Return the JSON that a command prints, and assert that it succeeds."""
    done = elastic(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def run_arguments(place: Path, operator: str = "elastic.operators:CountByKey") -> list[str]:
    return [
        *("run", operator, "--name", "words", "--store", (place / "store").as_uri()),
        *("--path", str(place / "texts"), "--select", "explode(split(value, ' ')) AS word", "--key", "word"),
        *("--nodes", "2", "--tasks", "16", "--set", "snapshot_seconds=1"),
    ]


@pytest.fixture
def job(place: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "elastic", *run_arguments(place, "tests.spark.jobs:CountSlowToMove")]
    with (
        (place / "complaints").open("w") as complaints,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, text=True) as started,  # noqa: S603
    ):
        assert started.stdout is not None
        assert "words is running. Page and API: http://127.0.0.1:" in started.stdout.readline()
        try:
            yield started
        finally:
            if started.poll() is None:
                started.kill()


def outcomes() -> list[str]:
    """Return the outcomes of the migrations, oldest first."""
    records = ask("journal")["records"]
    return [record["outcome"] for record in reversed(records) if record["kind"] == "ended"]


def test_commands_run_monitor_scale_and_stop_a_job(job: subprocess.Popen[str], place: Path) -> None:
    until(lambda: ask("status")["rows"] == 3, _SECONDS)
    assert "words: running" in elastic("status").stdout
    watched = elastic("watch", "--duration", "1")
    assert watched.exit_code == 0, watched.output
    assert "words: running" in watched.stdout
    assert "ssm" in elastic("plan", "--nodes", "4", "--relax").stdout
    for verb, refused in [(verb, begin(verb)) for verb in ("pause", "resume", "cancel")]:
        done = wait_for(refused)
        assert done.returncode == 1
        assert f"no migration is in progress, so there is nothing to {verb}." in done.stderr

    scale = ("scale", "--nodes", "4", "--relax", "--yes", "--detach", "--tasks-per-node", "1")
    both = [wait_for(process) for process in [begin(*scale), begin(*scale)]]
    assert sorted(done.returncode for done in both) == [0, 4]
    assert "Wait for it" in "".join(done.stderr for done in both)
    assert ask("pause")["is_paused"]
    assert not ask("resume")["is_over"]
    until(lambda: outcomes() == ["done"], _SECONDS)
    assert len(ask("status")["nodes"]) == 4

    assert not ask("scale", "--nodes", "2", "--relax", "--detach", "--tasks-per-node", "1")["is_over"]
    assert ask("cancel")["number"] == 2
    until(lambda: outcomes() == ["done", "cancelled"], _SECONDS)
    assert ask("rebalance", "--relax")["progress"]["phase"] == "done"
    assert outcomes() == ["done", "cancelled", "done"]

    job.send_signal(signal.SIGINT)
    assert job.wait(60) == 0
    complaints = (place / "complaints").read_text()
    assert "is lost" not in complaints  # Ctrl-C stops nodes gracefully
    assert "MicroBatchExecution" not in complaints
    assert wait_for(begin("status")).returncode == 2
    assert not list((place / "state").rglob("*.json"))


@pytest.mark.usefixtures("spark_of_programs")
def test_a_run_ends_with_its_input(place: Path) -> None:
    done = elastic(*run_arguments(place), "--once")
    assert done.exit_code == 0, done.output
    assert "words has processed" in done.output
    assert os.environ["ELASTIC_SECRET"] not in done.output
