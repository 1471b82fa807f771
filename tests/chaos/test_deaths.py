"""The weapons are tried out: a planned death happens once, and only descendants are found."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.chaos import processes
from tests.chaos.deaths import APPLYING, COMMITTED, REPLAYING, Deaths
from tests.chaos.life import ROOT

PLAN = ((APPLYING, 3), (REPLAYING, 3))


def fate(folder: Path, *moments: str, task: int) -> int:
    """How a process ends that reaches these moments of batch 3."""
    program = f"from tests.chaos.deaths import Deaths\ndeaths = Deaths({str(folder)!r}, {PLAN!r})\n"
    program += "".join(f"deaths.at({moment!r}, 3, {task})\n" for moment in moments)
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode  # noqa: S603


def test_a_planned_death_happens_once_and_a_replay_dies_in_the_same_task(tmp_path: Path) -> None:
    both = (APPLYING, REPLAYING)
    assert fate(tmp_path, COMMITTED, task=7) == 0
    assert [fate(tmp_path, *both, task=task) for task in (7, 8, 7, 7)] == [-signal.SIGKILL, 0, -signal.SIGKILL, 0]
    assert Deaths(str(tmp_path), PLAN).happened() == [*both]


def test_descendants_are_found_and_killed_and_others_are_not() -> None:
    script = "sleep 60 & sleep 60 & wait"
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.DEVNULL) as shell:  # noqa: S603, S607
        while len(found := processes.descendants(shell.pid)) < 2:
            assert shell.poll() is None
        assert all("sleep" in command for command in found.values())
        assert os.getpid() not in found
        assert shell.pid in processes.descendants(os.getpid())
        assert processes.kill_left(found, 0.0) == 2
        assert shell.wait(10) == 0
