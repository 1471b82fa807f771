"""Matrices for readers."""

import subprocess
import sys
from pathlib import Path

import pytest

from mdp.errors import MissingPackage
from mdp.learning import HourlyMatrices, draw_matrix, format_matrix, format_summary, learn
from mdp.learning.rendering import format_hours
from mdp.matrix import TransitionMatrix

MATRIX = learn([8, 9, 8, 10, 9, 8, 9], 8, 11, origin={"source": "tweets.csv"})
HOURLY = HourlyMatrices(MATRIX, [None] * 23 + [MATRIX])


def test_a_table_shows_what_is_likely_and_how_often_it_was_seen() -> None:
    assert format_matrix(MATRIX).splitlines() == [
        r"from \ to    8    9   10   11     seen",
        "--------------------------------------",
        "        8    . 0.67 0.33    .        3",
        "        9 1.00    .    .    .        2",
        "       10    . 1.00    .    .        1",
        "       11 0.07 0.14 0.79    .    prior",
    ]


def test_a_wide_matrix_stays_in_line() -> None:
    nodes = range(95, 105)
    uniform = TransitionMatrix(nodes, [[0.1] * 10] * 10, [[100_000] * 10] * 10)
    assert len({len(line) for line in format_matrix(uniform).splitlines()}) == 1


def test_a_summary_says_where_the_matrix_is_from_and_what_is_guessed() -> None:
    said = format_summary(MATRIX)
    assert "6 migrations seen" in said
    assert "from tweets.csv" in said
    assert "11 nodes" in said


def test_hours_are_one_line_each() -> None:
    lines = format_hours(HOURLY).splitlines()
    assert len(lines) == 26
    assert "as all hours" in lines[1]
    assert "0.50" in lines[24]


@pytest.mark.parametrize("matrix", [MATRIX, HOURLY, learn([1, 30])], ids=["one", "hours", "large"])
def test_a_picture_is_a_png(matrix: TransitionMatrix | HourlyMatrices, tmp_path: Path) -> None:
    path = draw_matrix(matrix, tmp_path / "new" / "matrix.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_a_picture_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPackage, match=r"spark-elastic\[charts\]"):
        draw_matrix(MATRIX, tmp_path / "matrix.png")


def test_learning_drags_in_neither_spark_nor_matplotlib() -> None:
    program = (
        "import sys; from mdp.learning import *; learn([8, 9]); "
        "print([name for name in ('pyspark', 'boto3', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"
