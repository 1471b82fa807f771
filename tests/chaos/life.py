"""One life of a driver in a separate process: its reports, and the ways to finish or kill it."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.chaos import processes
from tests.chaos.settings import DriverSettings

ROOT = Path(__file__).parents[2]
_EXECUTOR = "CoarseGrainedExecutorBackend"
_WORKER = "pyspark"  # in the command line of every Python process that Spark starts
_LOG_LENGTH = 3_000
_SETTLE_SECONDS = 20.0


class DriverEnded(Exception):
    """The driver ended although it was not asked to."""


class Life:
    """A driver and all that it starts, from its construction until `close`."""

    def __init__(self, settings: DriverSettings, environment: Mapping[str, str], log: Path) -> None:
        self.status: dict[str, Any] = {}  # its latest report of the job
        self.facts: dict[str, Any] = {}  # all its other reports, the newest of each name
        self._statuses = 0  # how many there were
        self._log = log
        self._told = threading.Condition()
        with log.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "tests.chaos.driver", *settings.arguments()],
                cwd=ROOT,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def published_batch(self) -> int:
        return int(self.status.get("published_batch", -1))

    @property
    def nodes(self) -> dict[str, int]:
        """Process ids of the nodes that have reported them."""
        return dict(self.status.get("pids", {}))

    @property
    def losses(self) -> int:
        """Nodes that the job has declared lost."""
        return int(self.status.get("losses", 0))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def api_url(self) -> str:
        return str(self.facts["serving"]["url"])

    @property
    def jvm(self) -> int:
        return int(self.facts["spark"]["jvm"])

    @property
    def recoveries(self) -> list[tuple[float, int]]:
        """Seconds and replayed rows of every node that came back."""
        return [(seconds, rows) for seconds, rows in self.status.get("recoveries", ())]

    @property
    def scaled(self) -> int:
        """Migrations that are over, in this life and those before."""
        return int(self.status.get("scaled", 0))

    @property
    def leavings(self) -> dict[int, str]:
        """What a driver that is gone left behind: its JVM, and all that this one started."""
        jvm = self.facts["spark"]["jvm"]
        return {jvm: processes.command_line(jvm), **processes.descendants(jvm)}

    def executors_with_nodes(self) -> list[int]:
        """The JVMs of executors in whose Python processes there are nodes."""
        found = processes.descendants(self._process.pid)
        executors = [pid for pid, command in found.items() if _EXECUTOR in command]
        return [pid for pid in executors if processes.descendants(pid).keys() & set(self.nodes.values())]

    def wait_for(self, condition: Callable[[], bool], deadline: float) -> None:
        """Until something that it tells is so; `DriverEnded`, `TimeoutError`."""
        ended = False
        with self._told:
            while not condition():
                if ended:
                    self.check()
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the driver did not get there in time. It said: {self._said()}")
                # What it said before it ended is still to be heard: hence another look after that.
                ended = self._process.poll() is not None
                self._told.wait(1.0)

    def wait_for_statuses(self, count: int, deadline: float) -> None:
        """Wait until the driver has reported its status that many more times."""
        last = self._statuses + count
        self.wait_for(lambda: self._statuses >= last, deadline)

    def check(self) -> None:
        """`DriverEnded`, if it has."""
        if self._process.poll() is not None:
            raise DriverEnded(f"the driver ended with {self._process.returncode}. It said: {self._said()}")

    def wait_for_end(self, seconds: float, why: str) -> str:
        """Until it ends by itself, with an error; what it said."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the driver did not end within {seconds:g} s, though {why}") from None
        if code == 0:
            raise DriverEnded(f"the driver ended as if all were well, though {why}")
        return self._said()

    def finish(self, deadline: float) -> dict[str, Any]:
        """Let it take a few more batches and end; return its last report."""
        assert self._process.stdin is not None
        self._process.stdin.write("finish\n")
        self._process.stdin.flush()
        self.wait_for(lambda: "finished" in self.facts, deadline)
        left = processes.descendants(self._process.pid)
        if self._process.wait(max(deadline - time.monotonic(), 1.0)):
            self.check()
        processes.kill_left(left, _SETTLE_SECONDS)
        return dict(self.facts["finished"])

    def kill_node(self, pid: int) -> bool:
        """Kill a process if it is one of Spark's Python processes below this driver."""
        found = processes.descendants(self._process.pid)
        return _WORKER in found.get(pid, "") and processes.kill(pid)

    def kill(self, *, jvm_too: bool) -> dict[int, str]:
        """End it as a crash would, and its JVM, which otherwise finds out by itself; what it leaves behind."""
        left = processes.descendants(self._process.pid)
        self._process.kill()
        if jvm_too and "spark" in self.facts:
            processes.kill(self.facts["spark"]["jvm"])
        self._process.wait()
        return left

    def close(self) -> None:
        """End everything that is still there."""
        if self._process.poll() is None:
            processes.kill_left(self.kill(jvm_too=True), _SETTLE_SECONDS)
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        # The JVM and its Python processes write to the same place: it ends with the last of them.
        self._listener.join(_SETTLE_SECONDS)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with self._told:
                    self._note(line)
                    self._told.notify_all()

    def _note(self, line: str) -> None:
        try:
            facts = json.loads(line)
        except ValueError:  # the last line of a killed process
            return
        if facts["event"] == "status":
            self.status = facts
            self._statuses += 1
        else:
            self.facts[facts["event"]] = facts

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-_LOG_LENGTH:]
