"""Numbered texts depend on their number alone, and a board follows the patterns."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from elastic.errors import InvalidSetting
from examples.frequent_patterns.board import Board, Change
from examples.frequent_patterns.miner import mine
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.texts import CsvTexts, GeneratedTexts


def test_a_generated_text_depends_on_its_number_and_the_seed_alone() -> None:
    numbers = np.array([5, 700, 5, 0, 1023, 512])
    at_once = GeneratedTexts(3).take(numbers).to_pylist()
    one_by_one = [GeneratedTexts(3).take(np.array([number]))[0].as_py() for number in numbers]
    assert at_once == one_by_one
    assert at_once != GeneratedTexts(4).take(numbers).to_pylist()
    assert GeneratedTexts(3).take(np.zeros(0, np.int64)).to_pylist() == []


def test_generated_texts_have_changing_patterns_of_several_words() -> None:
    mining = Mining(threshold=30, length=3)
    early, late = (mine(GeneratedTexts(1).take(np.arange(2_000) + first).to_pylist(), mining) for first in (0, 9_000))
    longer = [{pattern for pattern in found if " " in pattern} for found in (early, late)]
    assert len(longer[0] - longer[1]) > 3
    assert len(longer[1] - longer[0]) > 3


def test_texts_of_a_file_repeat_after_the_last(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text('created_at,text\n2015-02-16 23:36:00,"a, quoted\ntext"\n2015-02-16 23:43:00,another\n')
    texts = CsvTexts.read(path)
    assert texts.take(np.arange(3)).to_pylist() == ["a, quoted\ntext", "another", "a, quoted\ntext"]


@pytest.mark.parametrize("content", ["", "created_at\n2015\n", "text\n"])
def test_a_file_without_texts_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "texts.csv"
    path.write_text(content)
    with pytest.raises(InvalidSetting, match="texts"):
        CsvTexts.read(path)


def changes(*rows: tuple[str, str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(("pattern", "change", "texts"), row, strict=True)) for row in rows])


def test_a_board_holds_the_patterns_after_the_newest_batch_and_takes_each_once() -> None:
    seen: list[Change] = []
    board = Board(seen.append)
    assert board.open("results") is None
    board.deliver(4, changes(("storm", "appeared", 3), ("spark", "appeared", 2)))
    board.deliver(4, changes(("storm", "vanished", 0)))
    board.deliver(5, pa.table({"_batch": pa.array([], pa.int64())}))
    board.deliver(6, changes(("storm", "vanished", 0), ("spark", "changed", 9), ("flink", "appeared", 2)))
    assert board.last == Change(6, {"spark": 9, "flink": 2}, 1, 1)
    assert [(change.batch, len(change.patterns)) for change in seen] == [(4, 2), (5, 2), (6, 2)]
    assert board.open("results") == 7
