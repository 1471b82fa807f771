"""A job whose process is killed with kill -9 again and again while its operator is replaced by newer versions."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.restarts.life import totals

pytestmark = pytest.mark.slow
_SECONDS = 120.0


def live(folder: Path, operator: str, seconds: float | None) -> Any:
    """Run one life and kill it after so many seconds; without, return what it prints at its end."""
    command = [sys.executable, "-m", "tests.restarts.life", folder.as_uri(), operator]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "running\n"
            if seconds is None:
                return json.loads(process.communicate(timeout=_SECONDS)[0])
            time.sleep(seconds)
        finally:
            process.send_signal(signal.SIGKILL)
    return None


@pytest.mark.parametrize(
    ("seed", "lives"),
    [(1, ["Spending1", "Spending2", "Spending2", "Spending3"]), (2, ["Columns1", "Columns2", "Columns2"])],
)
def test_no_row_is_lost_or_counted_twice_by_upgrades_that_are_killed(
    tmp_path: Path, seed: int, lives: list[str]
) -> None:
    chance = random.Random(seed)  # noqa: S311 - of a test
    for operator in lives:
        seconds = chance.uniform(0.0, 0.6)
        print(f"{operator} is killed after {seconds:.2f} s")
        live(tmp_path, operator, seconds)
    found = live(tmp_path, lives[-1], None)
    if lives[-1].startswith("Spending"):
        for customer, value in found.items():
            ordered = [int(version) for version in value["from"]]
            assert ordered == sorted(set(ordered)), (customer, value)
            assert 3 not in ordered
        found = {customer: value["total"] for customer, value in found.items()}
    assert found == totals()
