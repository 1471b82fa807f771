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


def typed_as_printed(text: str, place: Path) -> str:
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
    told, complained = end(process, typed_as_printed(text, place) + "\n")
    assert process.returncode == 0, complained
    return told, complained


def repl(text: str, place: Path) -> tuple[str, str]:
    process = begin([sys.executable, "-i", "-u"], place)
    told, complained = end(process, typed_as_printed(text, place) + "\n")
    assert process.returncode == 0, complained
    return told, PROMPT.sub("", complained)


def assert_calm(complained: str) -> None:
    assert "Traceback" not in complained, complained
    assert "Error" not in complained, complained
    assert "replaced a previously registered" not in complained, complained


def command_lines() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")


def test_the_python_examples_can_be_typed_into_a_repl(place: Path) -> None:
    [prepare] = blocks("Ten lines of Python")
    [example] = blocks("Ten lines of Python", "python")
    shell(prepare, place)
    told, complained = repl(example + "job\njob.migration\njob.status()\n", place)
    assert_calm(complained)
    assert re.search(r"^2 4$", told, re.MULTILINE)
    assert re.search(r"^\|\s*hello\|\s+2\|", told, re.MULTILINE)
    assert re.search(r"^Job\('words', stopped, nodes=6, batch=0, rows=4\)$", told, re.MULTILINE)
    assert re.search(r"^Migration\(4 -> 6 nodes, done, .*\)$", told, re.MULTILINE)
    assert re.search(r"^JobStatus\('words', stopped, .*\)$", told, re.MULTILINE)

    told, complained = repl(example, place)  # running it again goes on from there
    assert_calm(complained)
    assert re.search(r"^2 0$", told, re.MULTILINE)


def test_the_operator_can_be_typed_into_a_repl(place: Path) -> None:
    [example] = blocks("Write an operator", "python")
    told, complained = repl(example + "print('typed', tester)\n", place)
    assert_calm(complained)
    assert "typed" in told


def test_the_commands_can_be_typed_into_two_shells(place: Path) -> None:
    shell(blocks("Ten lines of Python")[0], place)
    [commands] = blocks("Scale it")
    run, _, others = commands.partition("\nelastic plan")
    plan, scale, watch = f"elastic plan{others}".strip().splitlines()
    job = begin(["bash", "--norc", "--noprofile", "-c", f"exec {typed_as_printed(run, place)}"], place)
    try:
        assert job.stdout is not None
        assert "counts runs. Page and API: http://127.0.0.1:" in job.stdout.readline()
        assert not [line for line in command_lines() if SECRET in line]
        told, complained = shell(plan, place)
        assert "ssm" in told
        assert_calm(complained)
        told, complained = shell(f"yes | {scale}", place)
        assert "4 -> 6 nodes, done" in told
        assert_calm(complained)
        told, complained = shell(f"timeout --signal=INT 4 {watch} | head -1", place)
        assert "counts: running" in told
        assert "6 nodes" in told
        assert complained == ""
        began = time.monotonic()
        job.send_signal(signal.SIGINT)
        _, complained = end(job)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
    assert job.returncode == 0, complained
    assert time.monotonic() - began < 90
    assert_calm(complained)
    for said in ("job counts starts: nodes=4", "job counts runs", "migration begins", "migration ended", "stopped"):
        assert said in complained
