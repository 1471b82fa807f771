"""Generated streams are the same in every run, skewed as asked for, and drift by the phase."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from elastic.errors import InvalidSetting
from elastic.routing import hash_key
from examples.frequent_patterns.texts import make_vocabulary
from examples.skewed_words.word_count import split_words
from examples.workloads import FileTexts, KeyStream, Pace, SkewedTexts, Trades, make_symbols, read_texts
from migration import Assignment

PACE = Pace(rows_per_batch=400, every_ms=100, batches_per_interval=3)


def key_stream(keys: int = 500, fluctuation: float = 1.0, seed: int = 0) -> KeyStream:
    return KeyStream(make_vocabulary(keys), nodes=4, tasks=16, skew=0.85, fluctuation=fluctuation, seed=seed)


def test_a_batch_is_the_same_whatever_was_drawn_before() -> None:
    forward, backward = key_stream(), key_stream()
    batches = [(batch, batch // 3) for batch in range(15)]
    drawn = {batch: forward.draw(batch, phase, 50).tolist() for batch, phase in batches}
    assert {batch: backward.draw(batch, phase, 50).tolist() for batch, phase in reversed(batches)} == drawn
    assert key_stream(seed=1).draw(0, 0, 50).tolist() != drawn[0]


def test_frequencies_are_zipf_and_keys_are_drawn_by_them() -> None:
    stream = key_stream()
    shares = np.sort(stream.shares(0))[::-1]
    assert shares[0] / shares[9] == pytest.approx(10**0.85, rel=0.02)
    counts = np.bincount(stream.draw(0, 0, 200_000), minlength=500)
    assert counts / 200_000 == pytest.approx(stream.shares(0), abs=0.003)


def test_in_every_phase_the_load_of_one_node_grows_by_the_fluctuation() -> None:
    stream = key_stream(keys=5_000, fluctuation=0.5)
    loads = [np.bincount(stream.homes, stream.shares(phase)) for phase in range(6)]
    for before, after in pairwise(loads):
        assert (after / before).max() >= 1.5
        assert np.count_nonzero(after > before) == 1


def test_without_fluctuation_nothing_drifts() -> None:
    stream = key_stream(fluctuation=0.0)
    assert np.array_equal(stream.shares(0), stream.shares(7))


def test_homes_are_the_nodes_of_a_job_that_starts() -> None:
    stream = key_stream(keys=64)
    owners = Assignment.even(16, 4).owners
    for word, home in zip(stream.names.to_pylist(), stream.homes.tolist(), strict=True):
        assert owners[hash_key(word, types=[pa.string()]) % 16] == f"node-{home + 1}"


def test_generated_texts_have_as_many_words_as_the_pace_says() -> None:
    texts = SkewedTexts(key_stream(), Pace(30, 100, 2)).batch(3)
    assert [len(text.split()) for text in texts.to_pylist()] == [8, 8, 8, 6]
    words = split_words(texts)
    assert words.to_pylist() == key_stream().names.take(pa.array(key_stream().draw(3, 1, 30))).to_pylist()


def test_texts_of_a_file_are_repeated(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("One, two!\n\nthree\nvier\n")
    texts = FileTexts(read_texts(tmp_path / "texts.txt"), 2)
    assert [texts.batch(number).to_pylist() for number in range(2)] == [["One, two!", "three"], ["vier", "One, two!"]]
    (tmp_path / "texts.csv").write_text('id,text\n1,"a, b"\n2,c\n')
    assert FileTexts(read_texts(tmp_path / "texts.csv"), 2).batch(5).to_pylist() == ["a, b", "c"]


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe"])
def test_a_file_without_texts_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_bytes(content)
    with pytest.raises(InvalidSetting, match="texts"):
        read_texts(tmp_path / "texts.txt")


def test_words_are_runs_of_letters_and_digits_in_lower_case() -> None:
    texts = pa.array(["The fox, 2 dogs", "", "...", "Straße-ÜBER it's"])
    assert split_words(texts).to_pylist() == ["the", "fox", "2", "dogs", "straße", "über", "it", "s"]


def test_trades_arrive_out_of_order_but_never_later_than_the_delay() -> None:
    trades = Trades(KeyStream(make_symbols(40), 4, 16, 0.85, 1.0), PACE, delay_ms=30)
    newest = -1
    for number in range(6):
        times = pc.divide(trades.batch(number)["time"].cast(pa.int64()), 1_000).to_numpy()
        assert times.min() > newest - 30
        assert not np.all(np.diff(times) >= 0)
        newest = max(newest, times.max())


def test_two_symbols_of_every_phase_burst() -> None:
    symbols = KeyStream(make_symbols(400), 4, 16, 0.0, 0.0)
    bursting = []
    for number in (0, 1, 3):
        counted = pc.value_counts(Trades(symbols, PACE, burst=0.5).batch(number)["symbol"]).to_pylist()
        hottest = sorted(counted, key=lambda one: -one["counts"])[:2]
        bursting.append({one["values"] for one in hottest})
        assert 0.4 < sum(one["counts"] for one in hottest) / PACE.rows_per_batch < 0.6
    assert bursting[0] == bursting[1] != bursting[2]


@pytest.mark.parametrize("fields", [(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0)])
def test_a_pace_without_rows_time_or_batches_is_refused(fields: tuple[int, int, int, int]) -> None:
    with pytest.raises(InvalidSetting, match=">= 1"):
        Pace(*fields)


def test_a_pace_has_whole_batches() -> None:
    pace = Pace.from_rate(1_000, every_ms=300, interval_seconds=1.0, intervals_per_phase=2)
    assert pace == Pace(rows_per_batch=300, every_ms=300, batches_per_interval=4, intervals_per_phase=2)
    assert pace.interval_ms == 1_200
    assert [pace.interval_of(batch) for batch in (0, 3, 4)] == [0, 0, 1]
    assert [pace.phase_of(batch) for batch in (0, 7, 8, 16)] == [0, 0, 1, 2]
    assert list(pace.batches_of(1)) == [4, 5, 6, 7]
