"""Examples in the shared Spark application, and in `make long` as a newcomer would run them."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from examples import word_count
from examples.demo.command import command as demo

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
TEXT = "the quick brown fox jumps over the lazy dog\nThe fox is quick, the dog is not\n"
DEMO = ["--pause", "1", "--rate", "40", "--every", "1000"]


def most_frequent(repeats: int) -> str:
    """The last line of the word count when it has seen the text so often."""
    words = Counter(re.findall(r"\w+", TEXT.lower()) * repeats)
    best = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:3]
    return "  ".join(f"{word} {count}" for word, count in best)


def assert_demo_is_exact(output: str, folder: Path) -> None:
    said = " ".join(output.split())
    for part in (
        "Dashboard: http://127.0.0.1:",
        "4 -> 6 nodes",
        "6 -> 3 nodes",
        "kill -9 of node-",
        "exact: the",
        "Standbys: ",
    ):
        assert part in said
    assert (folder / "demo.png").stat().st_size > 10_000
    assert "data:image/png" in (folder / "report.html").read_text()


@pytest.mark.usefixtures("spark_of_programs")
def test_word_count_counts_the_words_of_files(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "1.txt").write_text(TEXT)
    arguments = [str(texts), "--store", str(tmp_path / "store"), "--top", "3", "--once"]
    ended = CliRunner().invoke(word_count.main, arguments, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.splitlines()[-1] == most_frequent(1)


@pytest.mark.long
def test_word_count_resumes_in_another_process(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    command = [sys.executable, "-m", "examples.word_count", str(texts), "--store", str(tmp_path / "store")]
    for number in (1, 2):
        (texts / f"{number}.txt").write_text(TEXT)
        ended = subprocess.run(  # noqa: S603
            [*command, "--top", "3", "--once"], cwd=ROOT, capture_output=True, text=True, timeout=180, check=True
        )
        assert ended.stdout.splitlines()[-1] == most_frequent(number)


@pytest.mark.usefixtures("spark_of_programs")
def test_the_demo_scales_loses_a_node_and_proves_every_count(tmp_path: Path) -> None:
    ended = CliRunner().invoke(demo, [*DEMO, "--output", str(tmp_path)], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    assert_demo_is_exact(ended.output, tmp_path)


@pytest.mark.long
def test_the_demo_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "elastic", "demo", *DEMO, "--output", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert_demo_is_exact(ended.stdout, tmp_path)
