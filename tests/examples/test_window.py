"""A text is in the window from the batch of its arrival until it leaves, by batches, time or watermark."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from elastic.errors import InvalidSetting
from elastic.operators import Stage, stateless
from elastic.operators.testing import Crash, InputBatch, OperatorTester, Scale
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.span import Span
from examples.frequent_patterns.window import SlidingWindow


def texts(*given: str) -> list[dict[str, str]]:
    return [{"text": text} for text in given]


def running(window: str, **options: Any) -> OperatorTester:
    """Return a tester of the window and a stage that emits its output."""
    time = "at" if "watermark" in options else None
    echo = stateless(lambda rows: rows, "words string, texts int")
    schema = pa.schema([("text", pa.string()), ("at", pa.timestamp("us", "UTC"))]) if time else "text string"
    pipeline = [Stage(SlidingWindow(Mining(window=window), time)), Stage(echo, key="words")]
    return OperatorTester(pipeline, key="text", schema=schema, **options)


def counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row in rows:
        found[row["words"]] += row["texts"]
    return {words: texts for words, texts in found.items() if texts}


@pytest.mark.parametrize(
    ("text", "amount", "in_batches"),
    [("20 batches", 20, True), ("1 batch", 1, True), ("90 seconds", 90_000, False), ("1.5 hours", 5_400_000, False)],
)
def test_a_window_is_a_number_of_batches_or_a_duration(text: str, amount: int, in_batches: bool) -> None:
    assert Span.parse(text) == Span(amount, in_batches)


@pytest.mark.parametrize(
    "text", ["", "20", "batches", "1.5 batches", "0 seconds", "0 batches", "3 parsecs", "-1 hours"]
)
def test_an_invalid_window_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="window"):
        Span.parse(text)


def test_a_window_of_batches_has_no_time_column() -> None:
    with pytest.raises(InvalidSetting, match="duration"):
        SlidingWindow(Mining(window="3 batches"), time="at")


def test_texts_leave_after_their_batches_even_if_their_task_gets_no_rows() -> None:
    run = running("2 batches").run
    assert counts(run([texts("storm", "storm apache", "Storm!")])) == {"storm": 2, "apache storm": 1}
    assert counts(run([texts("flink")])) == {"flink": 1}
    assert counts(run([texts("spark")])) == {"spark": 1, "storm": -2, "apache storm": -1}
    assert counts(run([[]])) == {"flink": -1}
    assert counts(run([[], [], texts("storm")])) == {"spark": -1, "storm": 1}


def test_texts_leave_after_their_time() -> None:
    run = running("10 seconds").run
    assert counts(run([InputBatch(texts("storm"), timestamp_ms=1_000)])) == {"storm": 1}
    assert counts(run([InputBatch(texts("spark"), timestamp_ms=10_999)])) == {"spark": 1}
    assert counts(run([InputBatch([], timestamp_ms=11_000)])) == {"storm": -1}
    assert counts(run([InputBatch([], timestamp_ms=60_000)])) == {"spark": -1}


def test_with_a_time_column_texts_leave_by_the_watermark_and_late_ones_at_once() -> None:
    run = running("10 seconds", watermark=("at", 0)).run

    def at(second: int, text: str) -> list[dict[str, Any]]:
        return [{"text": text, "at": datetime.fromtimestamp(second, UTC)}]

    assert counts(run([at(100, "storm")])) == {"storm": 1}
    assert counts(run([[*at(109, "spark"), *at(99, "flink")]])) == {"spark": 1}
    assert counts(run([[*at(110, "samza"), *at(101, "heron")]])) == {"samza": 1, "heron": 1, "storm": -1}
    assert counts(run([at(111, "samza")])) == {"samza": 1, "heron": -1}


def test_texts_leave_in_the_same_batches_when_nodes_join_and_crash() -> None:
    story = [texts(*(f"word{number % (3 + batch)}" for number in range(12))) for batch in range(6)]
    undisturbed = running("3 batches").run([*story, [], [], []])
    disturbed = running("3 batches", snapshot_every=3)
    got = disturbed.run(
        [*story[:3], Scale(4), story[3], Crash("node-2"), story[4], Crash("node-1"), Scale(1), story[5]]
    )
    got += disturbed.run([[], Crash("node-1"), [], []])
    assert got == undisturbed
    assert counts(got) == {}
