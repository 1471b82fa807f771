"""The process in which PySpark plans a query on results: how it ends."""

import subprocess
import sys

import pytest

from elastic.runtime.sources.results_source import end_with_spark

RUNNER = """
import sys
from types import SimpleNamespace
from elastic.runtime.sources.results_source import end_with_spark

sys.modules["__main__"].__spec__ = SimpleNamespace(name={module!r})
try:
    raise {error}
finally:
    end_with_spark(sys.exc_info()[1])
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
def test_it_ends_in_silence_only_when_spark_has_gone(module: str, error: str, code: int) -> None:
    program = RUNNER.format(module=module, error=error)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert done.returncode == code
    assert ("Traceback" in done.stderr) == bool(code)


def test_a_reader_that_is_stopped_elsewhere_lives_on() -> None:
    end_with_spark(None)
    end_with_spark(EOFError())
