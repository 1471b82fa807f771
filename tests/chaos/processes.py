"""Processes of this machine, as /proc tells of them: who started whom, and what it is."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_LOOK_SECONDS = 0.05


def command_line(pid: int) -> str:
    """Empty for a process that is gone, or is only waited for."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants(pid: int) -> dict[int, str]:
    """All that a process started, and those started, with their command lines; without the process itself."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            children.setdefault(_parent(int(entry.name)), []).append(int(entry.name))
    found, to_look_at = {}, [pid]
    while to_look_at:
        for child in children.get(to_look_at.pop(), ()):
            found[child] = command_line(child)
            to_look_at.append(child)
    return found


def kill(pid: int) -> bool:
    """End it at once, as a crash would; whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def kill_left(processes: dict[int, str], seconds: float) -> int:
    """Give processes time to end by themselves and end the others; how many those were.

    A number that another process has by now is left alone: its command line is another one.
    """
    deadline = time.monotonic() + seconds
    while (left := _living(processes)) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    return sum(kill(pid) for pid in left)


def _living(processes: dict[int, str]) -> list[int]:
    return [pid for pid, command in processes.items() if command and command_line(pid) == command]


def _parent(pid: int) -> int:
    with suppress(FileNotFoundError, ProcessLookupError):
        # The name in parentheses may hold anything, even parentheses.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0
