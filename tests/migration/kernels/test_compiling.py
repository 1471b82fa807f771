"""Compiling loops: announced once, and never again from the cache."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

LOOPS = """
from migration.compiling import compiled

@compiled
def successor(number):
    return number + 1

@compiled
def twice(number):
    return 2 * number

print(successor(1), twice(1))
"""


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, str(folder / "loops.py")]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=True)  # noqa: S603


def test_the_first_compilation_is_announced_on_standard_error_and_the_cache_is_silent(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    first, second = run(tmp_path), run(tmp_path)
    assert first.stdout == second.stdout == "2 2\n"
    assert first.stderr == "compiling loops for this installation, once; this takes up to a minute\n"
    assert second.stderr == ""


def test_the_loops_of_other_packages_are_not_announced(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(
        "import numba, migration.compiling\n@numba.njit\ndef successor(n):\n    return n + 1\nprint(successor(1))\n"
    )
    done = run(tmp_path)
    assert (done.stdout, done.stderr) == ("2\n", "")
