"""The pipeline equals the miner after every batch, whatever happens to its nodes."""

import random
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from elastic.errors import InvalidSetting
from elastic.operators.testing import Crash, OperatorTester, Scale
from examples.frequent_patterns.audit import Audit, difference
from examples.frequent_patterns.board import Change, update
from examples.frequent_patterns.miner import mine
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.pipeline import DETECTOR, REPORTER, stages
from examples.frequent_patterns.texts import GeneratedTexts

LETTERS = ["aa", "bb", "cc", "dd", "ee"]
one_text = st.lists(st.sampled_from(LETTERS), max_size=5).map(" ".join)
stories = st.lists(st.lists(one_text, max_size=6), min_size=1, max_size=8)


class Run:
    """A pipeline in one process, and the patterns that its reporter has emitted so far."""

    def __init__(self, mining: Mining, **options: Any) -> None:
        self.tester = OperatorTester(stages(mining), key="text", schema="text string", **{"tasks": 6, **options})
        self.patterns: dict[str, int] = {}

    def take(self, *items: Any) -> list[dict[str, Any]]:
        """Run batches of texts, and events between them; return the changes."""
        changes = self.tester.run([item if isinstance(item, Scale | Crash) else _rows(item) for item in items])
        self.patterns = update(self.patterns, changes)
        return changes


def _rows(texts: Sequence[str]) -> list[dict[str, str]]:
    return [{"text": text} for text in texts]


def in_window(batches_of_texts: Sequence[Sequence[str]], batch: int, batches: int) -> list[str]:
    return [text for texts in batches_of_texts[max(0, batch + 1 - batches) : batch + 1] for text in texts]


def test_a_pattern_that_a_frequent_one_contains_is_suppressed_until_that_vanishes() -> None:
    run = Run(Mining(threshold=2, window="2 batches"))
    assert run.take(["storm", "storm"]) == [{"pattern": "storm", "change": "appeared", "texts": 2}]
    run.take(["apache storm", "apache storm"])
    assert run.patterns == {"apache storm": 2}
    run.take(["storm"])
    assert run.patterns == {"apache storm": 2}
    run.take(["storm"])
    assert run.patterns == {"storm": 2}
    assert run.tester.state("storm", REPORTER) == {"texts": 2}
    assert run.tester.state("apache storm", REPORTER) is None
    run.take([], [])
    assert run.patterns == {}


def test_each_change_is_emitted_once() -> None:
    run = Run(Mining(threshold=1, window="1 batch"))
    assert {(row["pattern"], row["change"]) for row in run.take(["aa bb", "cc"])} == {
        ("aa bb", "appeared"),
        ("cc", "appeared"),
    }
    changes = run.take(["aa bb cc", "aa bb"])
    assert sorted((row["pattern"], row["change"], row["texts"]) for row in changes) == [
        ("aa bb", "vanished", 0),
        ("aa bb cc", "appeared", 1),
        ("cc", "vanished", 0),
    ]
    assert run.take(["aa bb cc"]) == []


@given(stories, st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.data())
def test_patterns_are_those_of_the_miner_after_every_batch_while_nodes_join_and_crash(
    batches_of_texts: list[list[str]], threshold: int, length: int, batches: int, data: st.DataObject
) -> None:
    mining = Mining(threshold, length, f"{batches} batches", max_words=4, stop_words=["ee"])
    run = Run(mining, snapshot_every=data.draw(st.integers(1, 4)))
    for batch, texts in enumerate([*batches_of_texts, []]):
        changes = run.take(texts)
        assert len({row["pattern"] for row in changes}) == len(changes)
        assert run.patterns == mine(in_window([*batches_of_texts, []], batch, batches), mining)
        happens = data.draw(st.sampled_from(["nothing", "scale", "crash"]))
        if happens == "scale":
            run.take(Scale(data.draw(st.integers(1, 6))))
        elif happens == "crash":
            run.take(Crash(data.draw(st.sampled_from(run.tester.assignment.nodes))))


@pytest.mark.parametrize("seed", range(3))
def test_many_texts_on_changing_topics_are_mined_exactly_while_nodes_join_and_crash(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - for a repeatable batches_of_texts
    mining, texts = Mining(threshold=4, length=3, window="4 batches"), GeneratedTexts(seed)
    run, audit = Run(mining, tasks=16), Audit(texts, 60, mining)
    for batch in range(10):
        numbers = np.arange(60) + batch * 60
        run.take(texts.take(numbers).to_pylist())
        assert audit.check(Change(batch, run.patterns, 0, 0)), audit.wrong
        if chance.random() < 0.3:
            run.take(Scale(chance.randint(1, 6)))
        if chance.random() < 0.3:
            run.take(Crash(chance.choice(run.tester.assignment.nodes)))
    assert audit.max_patterns > 20


def test_patterns_that_no_text_has_are_dropped() -> None:
    run = Run(Mining(threshold=2, window="2 batches"), tasks=2)
    for batch in range(40):
        run.take([f"word{batch} other{batch} apache storm"] * 2)
    world = run.tester._running
    rows = sum(len(world.state(unit).value) for unit in world.routing.units(2))
    # Fifteen patterns a batch, two batches in the window, eight between two looks, and twice that before one pays.
    assert rows < 15 * (2 + 8) * 2
    assert run.tester.state("word3", DETECTOR) is None
    assert run.tester.state("word39", DETECTOR) == {"texts": 2, "covers": 3, "frequent": True}
    assert run.tester.state("apache other39 storm", REPORTER) == {"texts": 2}


def test_changed_parameters_are_another_version() -> None:
    asked = [Mining(), Mining(threshold=21), Mining(length=2), Mining(window="9 seconds"), Mining(max_words=9)]
    asked += [Mining(stop_words=[]), Mining(dictionary=["storm"])]
    versions = [stages(mining)[2].operator.version for mining in asked]
    assert len(set(versions)) == len(asked)
    assert stages(Mining())[2].operator.version == versions[0]


@pytest.mark.parametrize("wrong", [{"threshold": 0}, {"length": 0}, {"window": "soon"}, {"max_words": 0}])
def test_invalid_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(wrong))):
        Mining(**wrong)


def test_too_many_patterns_per_text_are_refused_with_their_number() -> None:
    assert Mining(length=12).length == 12
    with pytest.raises(InvalidSetting, match="10,902 such patterns"):
        Mining(length=4, max_words=23)


def test_the_miner_finds_what_can_be_counted_by_hand() -> None:
    texts = ["apache storm", "apache storm", "apache flink", "storm"]
    assert mine(texts, Mining(threshold=2)) == {"apache storm": 2}
    assert mine(texts, Mining(threshold=3)) == {"apache": 3, "storm": 3}
    assert mine(texts, Mining(threshold=2, length=1)) == {"apache": 3, "storm": 3}
    assert mine([], Mining(threshold=1)) == {}


def test_an_audit_describes_differences() -> None:
    audit = Audit(GeneratedTexts(1), 10, Mining(threshold=2, window="2 batches"))
    assert not audit.check(Change(0, {"never said": 5}, 0, 0))
    assert "1 unexpected: 'never said' 5 for None" in audit.wrong[0]
    assert difference({"aa": 1}, {"aa": 2, "bb": 1}) == "1 missing: 'bb' None for 1; 1 wrong count: 'aa' 1 for 2"
    assert difference({}, {}) == "nothing"
    with pytest.raises(InvalidSetting, match="window"):
        Audit(GeneratedTexts(1), 10, Mining(window="9 seconds"))
