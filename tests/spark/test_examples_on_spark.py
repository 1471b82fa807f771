"""Examples run as a newcomer would run them."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
TEXT = "the quick brown fox jumps over the lazy dog\nThe fox is quick, the dog is not\n"


@pytest.mark.parametrize("runs", [1, pytest.param(2, marks=pytest.mark.long)])
def test_word_count_counts_the_words_of_files_and_resumes(runs: int, tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    command = [sys.executable, "-m", "examples.word_count", str(texts), "--store", str(tmp_path / "store")]
    for number in range(1, runs + 1):
        (texts / f"{number}.txt").write_text(TEXT)
        ended = subprocess.run(  # noqa: S603
            [*command, "--top", "3", "--once"], cwd=ROOT, capture_output=True, text=True, timeout=180, check=True
        )
        words = Counter(re.findall(r"\w+", TEXT.lower()) * number)
        best = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:3]
        assert "  ".join(f"{word} {count}" for word, count in best) == ended.stdout.splitlines()[-1]


def test_the_demo_scales_loses_a_node_and_proves_every_count(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "elastic", "demo", "--pause", "1", "--rate", "40", "--every", "1000"]
    command += ["--output", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603
    assert ended.returncode == 0, ended.stdout + ended.stderr
    said = " ".join(ended.stdout.split())
    for part in ("Dashboard: http://127.0.0.1:", "4 -> 6 nodes", "6 -> 3 nodes", "kill -9 of node-", "exact: the"):
        assert part in said
    assert (tmp_path / "demo.png").stat().st_size > 10_000
    assert "data:image/png" in (tmp_path / "report.html").read_text()
