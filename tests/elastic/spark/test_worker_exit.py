"""Python processes of PySpark exit without a traceback when Spark has closed their connection."""

import socket
import subprocess
import sys

import pytest

from elastic.spark.worker_exit import exit_quietly, exit_with_spark

RUNNER = """
import sys
from types import SimpleNamespace
from elastic.spark.worker_exit import exit_with_spark

sys.modules["__main__"].__spec__ = SimpleNamespace(name={module!r})
try:
    raise {error}
finally:
    exit_with_spark(sys.exc_info()[1])
"""


@pytest.mark.parametrize(
    ("module", "error", "code"),
    [
        ("pyspark.sql.streaming.python_streaming_source_runner", "EOFError", 0),
        ("pyspark.sql.streaming.python_streaming_source_runner", "BrokenPipeError", 0),
        ("pyspark.sql.streaming.python_streaming_source_runner", "ValueError", 1),
        ("pytest", "EOFError", 1),
    ],
)
def test_a_runner_exits_without_a_traceback_only_when_spark_has_gone(module: str, error: str, code: int) -> None:
    program = RUNNER.format(module=module, error=error)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert done.returncode == code
    assert ("Traceback" in done.stderr) == bool(code)


PLANNER = """
import sys
from types import SimpleNamespace

def worker(sock, authenticated):
    raise BrokenPipeError

sys.modules["__main__"].__spec__ = SimpleNamespace(name={module!r})
import elastic.spark.sources

print(worker(None, True))
"""


@pytest.mark.parametrize(("module", "output"), [("pyspark.daemon", "1\n"), ("my_module", "")])
def test_a_planner_exits_without_a_traceback_and_other_programs_are_left_alone(module: str, output: str) -> None:
    program = PLANNER.format(module=module)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert done.stdout == output
    assert ("Traceback" in done.stderr) == (not output)


def test_a_reader_that_stops_in_another_process_does_not_exit() -> None:
    exit_with_spark(None)
    exit_with_spark(EOFError())


def write_after_the_end(sock: socket.socket, authenticated: bool) -> int:
    """Write as PySpark's worker does when it flushes its output."""
    for _ in range(2):
        sock.sendall(b"results")
    return int(authenticated)


def test_a_worker_whose_connection_spark_has_closed_exits_without_a_traceback() -> None:
    ours, sparks = socket.socketpair()
    with ours, sparks:
        assert exit_quietly(write_after_the_end)(ours, True) == 1
        sparks.close()
        with pytest.raises(BrokenPipeError):
            write_after_the_end(ours, False)
        assert exit_quietly(write_after_the_end)(ours, False) == 1


def test_other_failures_of_a_worker_are_not_hidden() -> None:
    def fail(_: object, __: bool) -> int:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        exit_quietly(fail)(None, True)
