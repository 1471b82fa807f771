"""Whoever sits at a terminal sees that something is under way; standard output never has a word of it."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from elastic.cli.waiting import waiting
from mdp.learning import tweet_volume, write_csv


def at_a_terminal(*arguments: str) -> tuple[str, str]:
    """What a command writes to standard output, and what to a standard error that is a terminal."""
    ours, its = pty.openpty()
    command, environ = [sys.executable, "-m", "elastic", *arguments], {**os.environ, "TERM": "xterm"}
    seen = bytearray()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=its, text=True, env=environ) as started:  # noqa: S603
        os.close(its)
        with suppress(OSError):  # so Linux says that the other end is closed
            while chunk := os.read(ours, 4096):
                seen += chunk
        os.close(ours)
        assert started.stdout is not None
        return started.stdout.read(), seen.decode()


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(write_csv(tweet_volume(seed=1, days=30), tmp_path / "tweets.csv"))


def test_a_spinner_says_what_is_done_just_now(log: str) -> None:
    printed, seen = at_a_terminal("learn", "--input", log, "--range", "8", "16")
    assert "learning from" in seen or "reading" in seen
    assert "from \\ to" in printed
    assert "reading" not in printed
    assert "\x1b" not in printed


def test_json_is_never_accompanied(log: str) -> None:
    printed, seen = at_a_terminal("learn", "--input", log, "--range", "8", "16", "--json")
    assert json.loads(printed)
    assert seen == ""


def test_nothing_spins_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with waiting("thinking") as say:
        say("thinking on")
    assert capfd.readouterr() == ("", "")
