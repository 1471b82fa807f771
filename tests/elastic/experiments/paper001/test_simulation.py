"""Streams and simulated sources."""

import numpy as np
import pytest

from elastic.errors import InvalidJob
from elastic.experiments.paper001 import QUICK, Lab
from elastic.experiments.paper001.imbalance import measure_baselines
from elastic.experiments.paper001.over_time import jaccard
from elastic.experiments.paper001.simulation import Technique, count_copies, floor_share, simulate
from elastic.experiments.paper001.streams import Stream, drifting, edges, log_normal, zipf
from elastic.routing import hash_key


def counted(stream: Stream) -> list[int]:
    return sorted(np.bincount(stream.keys).tolist(), reverse=True)


def test_log_normal_samples_are_rounded() -> None:
    """Key 0 stands for samples below one half: Phi((ln 0.5 - mu) / sigma) = 14.7 % of LN1."""
    stream = log_normal("LN1", 1.789, 2.366, 200_000, seed=1)
    assert np.bincount(stream.keys)[0] / 200_000 == pytest.approx(0.1470, abs=0.003)
    assert stream.heaviest_share == pytest.approx(0.1470, abs=0.003)


def test_a_zipf_stream_has_the_share_that_was_asked_for() -> None:
    stream = zipf("zipf", 1_000, 0.0932, 50_000, seed=1)
    counts = counted(stream)
    assert stream.heaviest_share == pytest.approx(0.0932, abs=0.005)
    assert counts[0] / counts[3] == pytest.approx((counts[0] / counts[1]) ** 2, rel=0.2)
    with pytest.raises(InvalidJob, match=r"cannot have 0\.0001 of all messages"):
        zipf("zipf", 1_000, 0.0001, 10)


def test_popular_keys_of_a_drifting_stream_change() -> None:
    stream = drifting("drift", 500, 0.1, 20_000, 2, seed=1)
    first, second = (np.bincount(half, minlength=500).argmax() for half in np.split(stream.keys, 2))
    assert first != second
    assert stream.heaviest_share < 0.07


def test_edges_have_uneven_sources_and_targets() -> None:
    stream, sources = edges("graph", 300, 0.05, 0.2, 20_000, seed=1)
    assert stream.messages == len(sources) == 20_000
    assert stream.heaviest_share == pytest.approx(0.05, abs=0.01)
    assert np.bincount(sources).max() / 20_000 == pytest.approx(0.2, abs=0.02)


def test_keys_are_numbered_from_zero_and_hashed_as_the_engine_does() -> None:
    stream = Stream.of_numbers("few", np.array([7, 3, 7, 9]))
    assert stream.keys.tolist() == [1, 0, 1, 2]
    assert stream.hashes.view(np.int64).tolist() == [hash_key(3), hash_key(7), hash_key(9)]
    with pytest.raises(InvalidJob, match="has keys without messages"):
        Stream("gap", np.array([0, 2], np.int32), stream.hashes)


def test_the_imbalance_is_the_largest_load_less_the_mean() -> None:
    stream = Stream.of_numbers("one key", np.zeros(100, np.int64))
    run = simulate(stream, Technique("hash"), 4, samples=4)
    assert run.times.tolist() == [25, 50, 75, 100]
    assert run.imbalances.tolist() == [0.75 * time for time in run.times]
    assert run.mean_share == pytest.approx(0.75 * 62.5 / 100)
    assert (run.final_share, run.largest_share) == (0.75, 1.0)


def test_two_choices_of_one_key_are_at_the_floor() -> None:
    stream = Stream.of_numbers("one key", np.zeros(1_000, np.int64))
    run = simulate(stream, Technique("pkg"), 5)
    assert run.final_share == pytest.approx(floor_share(1.0, 5)) == pytest.approx(0.3)
    assert floor_share(0.1, 5) == 0


def test_sources_with_local_estimates_balance_what_each_sends() -> None:
    stream = zipf("zipf", 500, 0.05, 6_000)
    source_of = np.arange(6_000) % 3
    run = simulate(stream, Technique("pkg", 3), 4, samples=7, keep_choices=True)
    for source in range(3):
        assert np.ptp(np.bincount(run.choices[source_of == source], minlength=4)) <= 3
    named = simulate(stream, Technique("pkg", 3), 4, samples=7, source_of=source_of, keep_choices=True)
    assert (run.choices == named.choices).all()
    assert run.loads.tolist() == np.bincount(run.choices, minlength=4).tolist()


def test_probing_makes_sources_choose_the_same_workers() -> None:
    stream = zipf("zipf", 500, 0.03, 20_000)
    local, probed = (simulate(stream, Technique("pkg", 5, probes=probes), 10, samples=20) for probes in (False, True))
    assert probed.mean_share > 5 * local.mean_share


def test_combining_sends_a_key_once_per_batch_and_source() -> None:
    stream = Stream.of_numbers("two keys", np.arange(100) % 2)
    run = simulate(stream, Technique("hash", combines=True), 3, samples=10)
    assert run.loads.sum() == 2 * 10
    assert simulate(stream, Technique("hash", 2, combines=True), 3, samples=10).loads.sum() == 2 * 10


def test_copies_are_pairs_of_a_key_and_a_worker() -> None:
    keys, chosen = np.array([0, 0, 1, 1, 1], np.int32), np.array([0, 1, 1, 1, 2], np.int16)
    assert count_copies(keys, chosen, 4).tolist() == [1, 2, 1, 0]


def test_choices_are_kept_only_if_asked_for() -> None:
    run = simulate(Stream.of_numbers("one key", np.zeros(10, np.int64)), Technique("hash"), 2)
    with pytest.raises(InvalidJob, match="keep_choices=True"):
        assert run.choices is None


def test_the_overlap_is_that_of_sets_of_messages_and_workers() -> None:
    stream = zipf("zipf", 50, 0.1, 100)
    run = simulate(stream, Technique("shuffle"), 2, keep_choices=True)
    other = simulate(stream, Technique("hash"), 2, keep_choices=True)
    agreed = int((run.choices == other.choices).sum())
    assert jaccard(run, run) == 1
    assert jaccard(run, other) == pytest.approx(agreed / (200 - agreed))


@pytest.mark.parametrize(
    ("technique", "label"),
    [
        (Technique("pkg"), "G"),
        (Technique("pkg", 5), "L5"),
        (Technique("pkg", 5, probes=True), "L5P"),
        (Technique("hash", combines=True), "H + combine"),
        (Technique("w-choices", 5), "W-Choices, 5 sources"),
    ],
)
def test_techniques_are_labelled_as_in_the_paper(technique: Technique, label: str) -> None:
    assert technique.label == label


def test_a_lab_gives_the_same_rows_again() -> None:
    one, other = (measure_baselines(Lab(QUICK, seed=3)) for _ in range(2))
    assert one == other
    [paper] = [row.paper for row in one if (row.stream, row.workers, row.technique) == ("Zipf-WP", 50, "G")]
    assert paper == pytest.approx(5.9e5 / 22e6)
