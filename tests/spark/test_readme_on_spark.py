"""The README, typed line by line into a fresh REPL and fresh shells, works as printed."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.long]
README = Path(__file__).parents[2] / "README.md"
SECRET = "a secret that no process list may show"  # noqa: S105
PROMPT = re.compile(r"^(?:(?:>>>|\.\.\.) )+", re.MULTILINE)
_SECONDS = 240


def blocks(title: str, language: str = "") -> list[str]:
    """The code blocks of a section."""
    section = README.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder in which `elastic` and `python` are the ones under test."""
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "elastic").write_text(f'#!/bin/sh\nexec {sys.executable} -m elastic "$@"\n')
    (commands / "elastic").chmod(0o755)
    return tmp_path


def with_test_store(text: str, place: Path) -> str:
    """Stores go into the folder of the test, and nothing else is changed."""
    return text.replace("file:///tmp/", f"{place.as_uri()}/")


def environment(place: Path) -> dict[str, str]:
    here = {"XDG_STATE_HOME": str(place / "state"), "XDG_CONFIG_HOME": str(place / "config"), "ELASTIC_SECRET": SECRET}
    return {**os.environ, **here, "PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def begin(command: list[str], place: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603
        command,
        cwd=place,
        env=environment(place),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end(process: subprocess.Popen[str], typed: str | None = None) -> tuple[str, str]:
    """What it said, and what it complained about; nothing of it stays behind."""
    try:
        return process.communicate(typed, timeout=_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def shell(text: str, place: Path) -> tuple[str, str]:
    process = begin(["bash", "--norc", "--noprofile", "-s"], place)
    output, errors = end(process, with_test_store(text, place) + "\n")
    assert process.returncode == 0, errors
    return output, errors


def repl(text: str, place: Path) -> tuple[str, str]:
    process = begin([sys.executable, "-i", "-u"], place)
    output, errors = end(process, with_test_store(text, place) + "\n")
    assert process.returncode == 0, errors
    return output, PROMPT.sub("", errors)


def assert_calm(errors: str) -> None:
    assert "Traceback" not in errors, errors
    assert "Error" not in errors, errors
    assert "replaced a previously registered" not in errors, errors


def command_lines() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")


def test_the_python_examples_can_be_typed_into_a_repl(place: Path) -> None:
    [prepare] = blocks("In Python")
    [example] = blocks("In Python", "python")
    shell(prepare, place)
    output, errors = repl(example + "job\njob.migration\njob.status()\n", place)
    assert_calm(errors)
    assert re.search(r"^2 4$", output, re.MULTILINE)
    assert re.search(r"^\|\s*hello\|\s+2\|", output, re.MULTILINE)
    assert re.search(r"^SparkJob\('words', stopped, nodes=6, batch=0, rows=4\)$", output, re.MULTILINE)
    assert re.search(r"^TaskMigration\(4 -> 6 nodes, done, .*\)$", output, re.MULTILINE)
    assert re.search(r"^JobStatus\('words', stopped, .*\)$", output, re.MULTILINE)

    output, errors = repl(example, place)  # a second run resumes
    assert_calm(errors)
    assert re.search(r"^2 0$", output, re.MULTILINE)


def test_the_operator_can_be_typed_into_a_repl(place: Path) -> None:
    [example] = blocks("Write an operator", "python")
    output, errors = repl(example + "print('typed', tester)\n", place)
    assert_calm(errors)
    assert "typed" in output


def test_the_commands_can_be_typed_into_two_shells(place: Path) -> None:
    shell(blocks("In Python")[0], place)
    [commands] = blocks("Scale a job")
    run, _, others = commands.partition("\nelastic plan")
    plan, scale, watch = f"elastic plan{others}".strip().splitlines()
    job = begin(["bash", "--norc", "--noprofile", "-c", f"exec {with_test_store(run, place)}"], place)
    try:
        assert job.stdout is not None
        assert "counts is running. Page and API: http://127.0.0.1:" in job.stdout.readline()
        assert not [line for line in command_lines() if SECRET in line]
        output, errors = shell(plan, place)
        assert "ssm" in output
        assert_calm(errors)
        output, errors = shell(f"yes | {scale}", place)
        assert "4 -> 6 nodes, done" in output
        assert_calm(errors)
        output, errors = shell(f"timeout --signal=INT 4 {watch} | head -1", place)
        assert "counts: running" in output
        assert "6 nodes" in output
        assert errors == ""
        began = time.monotonic()
        job.send_signal(signal.SIGINT)
        _, errors = end(job)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
    assert job.returncode == 0, errors
    assert time.monotonic() - began < 90
    assert_calm(errors)
    for text in ("job counts starts: nodes=4", "job counts runs", "migration begins", "migration ended", "stopped"):
        assert text in errors
