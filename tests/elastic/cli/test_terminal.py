"""Progress is shown at a terminal, on standard error only."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from elastic.cli.terminal import show_spinner
from mdp.learning import generate_tweet_volume
from tests.mdp.instances import write_csv


def run_at_terminal(*arguments: str) -> tuple[str, str]:
    """Return the standard output of a command, and its standard error on a terminal."""
    terminal, device = pty.openpty()
    command, environ = [sys.executable, "-m", "elastic", *arguments], {**os.environ, "TERM": "xterm"}
    shown = bytearray()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=device, text=True, env=environ) as started:  # noqa: S603
        os.close(device)
        with suppress(OSError):  # how Linux reports that the other end is closed
            while chunk := os.read(terminal, 4096):
                shown += chunk
        os.close(terminal)
        assert started.stdout is not None
        return started.stdout.read(), shown.decode()


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(write_csv(generate_tweet_volume(seed=1, days=30), tmp_path / "tweets.csv"))


def test_a_spinner_shows_the_current_step(log: str) -> None:
    printed, shown = run_at_terminal("learn", "--input", log, "--range", "8", "16")
    assert "learning from" in shown or "reading" in shown
    assert "from \\ to" in printed
    assert "reading" not in printed
    assert "\x1b" not in printed


def test_with_json_there_is_no_progress(log: str) -> None:
    printed, shown = run_at_terminal("learn", "--input", log, "--range", "8", "16", "--json")
    assert json.loads(printed)
    assert shown == ""


def test_there_is_no_spinner_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with show_spinner("working") as set_text:
        set_text("still working")
    assert capfd.readouterr() == ("", "")
