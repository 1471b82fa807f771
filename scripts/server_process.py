"""A server in a process of its own, for tests and development."""

import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self


class ServerProcess(ABC):
    """A server that can be stopped, killed and restarted on the same port; its output goes to `log`."""

    start_seconds = 30.0
    stop_seconds = 10.0

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _is_ready(self) -> bool:
        """Return whether the server responds."""

    def _environment(self) -> Mapping[str, str] | None:
        """Return the variables of the process, or None for those of this one."""
        return None

    def start(self) -> None:
        """Start the process and wait until it responds."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                self._command, env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + self.start_seconds
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self} did not start. Its log: {self._log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Terminate the process gracefully."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(self.stop_seconds)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """Kill the process with kill -9, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Start the server, and stop it at the end."""
        self.start()
        try:
            yield self
        finally:
            self.stop()


def find_free_port() -> int:
    """Return a port of loopback on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
