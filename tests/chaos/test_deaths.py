"""The weapons are tried out: a planned death happens once, and only descendants are found."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import processes
from tests.chaos.deaths import APPLYING, COMMITTED, REPLAYING, Deaths
from tests.chaos.life import ROOT
from tests.chaos.small_disk import can_mount, fill, make_room, small_disk

PLAN = ((APPLYING, 3), (REPLAYING, 3))


_FATES = """
import json, os, sys
from tests.chaos.deaths import Deaths

folder, plan, stories = json.loads(sys.argv[1])
for moments, task in stories:
    if not (child := os.fork()):
        for moment in moments:
            Deaths(folder, tuple(map(tuple, plan))).at(moment, 3, task)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def find_fates(folder: Path, *stories: tuple[tuple[str, ...], int]) -> list[int]:
    """How processes end, one after the other, that reach these moments of batch 3 in this task."""
    command = [sys.executable, "-c", _FATES, json.dumps([str(folder), PLAN, stories])]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603
    return [int(code) for code in done.stdout.split()]


def test_a_planned_death_happens_once_and_a_replay_dies_in_the_same_task(tmp_path: Path) -> None:
    both = (APPLYING, REPLAYING)
    stories = (((COMMITTED,), 7), *((both, task) for task in (7, 8, 7, 7)))
    assert find_fates(tmp_path, *stories) == [0, -signal.SIGKILL, 0, -signal.SIGKILL, 0]
    assert Deaths(str(tmp_path), PLAN).happened() == [*both]


def test_descendants_are_found_and_killed_and_others_are_not() -> None:
    script = "sleep 60 & sleep 60 & wait"
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.DEVNULL) as shell:  # noqa: S603, S607
        # A child that was just started still has the command line of its parent.
        while list((found := processes.descendants(shell.pid)).values()) != ["sleep 60 "] * 2:
            assert shell.poll() is None
        assert os.getpid() not in found
        assert shell.pid in processes.descendants(os.getpid())
        assert processes.kill_left(found, 0.0) == 2
        assert shell.wait(10) == 0


def test_the_clock_of_a_driver_can_be_shifted_while_durations_stay_right(tmp_path: Path) -> None:
    program = (
        "import time; from tests.chaos.clock import follow_clock, set_clock\n"
        f"folder = {str(tmp_path)!r}; follow_clock(folder); before, steady = time.time_ns(), time.monotonic()\n"
        "set_clock(folder, 3_600_000); assert 3_599 < (time.time_ns() - before) / 1e9 < 3_660\n"
        "set_clock(folder, -3_600_000); assert time.time() < before / 1e9 - 3_500\n"
        "assert time.monotonic() - steady < 60\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0  # noqa: S603


@pytest.mark.skipif(not can_mount(), reason="only root can mount a small disk")
def test_a_small_disk_can_be_filled_and_has_room_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        assert fill(disk) > 1 << 20
        with pytest.raises(OSError, match="No space left"):
            (disk / "more").write_bytes(bytes(1 << 16))
        make_room(disk)
        (disk / "more").write_bytes(bytes(1 << 16))
    assert not (tmp_path / "disk" / "more").exists()
