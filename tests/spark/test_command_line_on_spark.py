"""The command line against a job that it runs itself, on a real Spark."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
_SECONDS = 120


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ELASTIC_SECRET", "a secret of this test")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("hello world hello\n")
    return tmp_path


def elastic(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "elastic", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603


def run_arguments(place: Path) -> list[str]:
    return [
        *("run", "elastic.operators:CountByKey", "--name", "words", "--store", (place / "store").as_uri()),
        *("--path", str(place / "texts"), "--select", "explode(split(value, ' ')) AS word", "--key", "word"),
        *("--nodes", "2", "--tasks", "16", "--set", "snapshot_seconds=1"),
    ]


@pytest.fixture
def job(place: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "elastic", *run_arguments(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:  # noqa: S603
        assert started.stdout is not None
        assert "words runs. Page and API: http://127.0.0.1:" in started.stdout.readline()
        try:
            yield started
        finally:
            if started.poll() is None:
                started.kill()


def test_a_job_is_run_looked_at_scaled_and_ended_by_command(job: subprocess.Popen[str], place: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while json.loads(elastic("status", "--json").stdout)["rows"] < 3:
        assert time.monotonic() < deadline
    assert "words: running" in elastic("status").stdout
    assert "ssm" in elastic("plan", "--nodes", "3", "--relax").stdout
    scaled = elastic("scale", "--nodes", "3", "--relax", "--yes", "--json")
    assert scaled.returncode == 0, scaled.stderr
    assert json.loads(scaled.stdout)["progress"]["phase"] == "done"
    assert len(json.loads(elastic("status", "--json").stdout)["nodes"]) == 3
    assert [record["kind"] for record in json.loads(elastic("journal", "--json").stdout)["records"]] == [
        "ended",
        "began",
    ]
    job.send_signal(signal.SIGINT)
    assert job.wait(60) == 0
    assert elastic("status").returncode == 2
    assert not list((place / "state").rglob("*.json"))


def test_a_run_may_end_when_all_is_done_and_what_is_wrong_is_told_before_spark_starts(place: Path) -> None:
    done = elastic(*run_arguments(place), "--once")
    assert done.returncode == 0, done.stderr
    for wrong, why in [
        ("nowhere:Operator", "there is no nowhere:Operator"),
        ("elastic.operators", "no MODULE:OPERATOR"),
        ("os:getcwd", "no operator"),
    ]:
        began = time.monotonic()
        refused = elastic("run", wrong, *run_arguments(place)[2:])
        assert refused.returncode == 2
        assert why in " ".join(refused.stderr.split())
        assert time.monotonic() - began < 30
    assert os.environ["ELASTIC_SECRET"] not in done.stdout + done.stderr
