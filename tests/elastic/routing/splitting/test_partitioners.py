"""Partitioners: compiled loops equal the plain ones, rows are counted, and keys go where they may."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from elastic.errors import InvalidJob
from elastic.routing import compiled_loops
from elastic.routing.splitting import (
    PARTITIONERS,
    KeyFrequencies,
    SpaceSaving,
    Targets,
    choose_targets,
    choose_targets_with_heads,
    create_sketch,
    head_choices,
    head_share,
    partitioners,
    reference,
)
from tests.elastic.routing.splitting.streams import HASHES, Hashes, imbalance, targets, zipf

SMALL_SKETCH = 7


def disable_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_loops.load_compiled.cache_clear()
    monkeypatch.setenv("ELASTIC_KERNEL", "numpy")


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    disable_numba(monkeypatch)


@pytest.fixture(autouse=True)
def _load_kernels_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    monkeypatch.undo()
    compiled_loops.load_compiled.cache_clear()


@given(HASHES, targets())
def test_the_compiled_loop_of_two_choices_equals_the_plain_one(hashes: Hashes, some: Targets) -> None:
    pytest.importorskip("numba")
    loads, plain = np.zeros(some.workers, np.int64), [0] * some.workers
    for part in np.array_split(hashes, 3):
        assert choose_targets(part, some, loads).tolist() == reference.route_two_choices(part.tolist(), some, plain)
    assert loads.tolist() == plain


def test_the_compiled_loop_of_two_choices_equals_the_plain_one_over_several_blocks() -> None:
    pytest.importorskip("numba")
    hashes, some = zipf(1_000, 50), Targets(np.arange(17) % 5, seed=4)
    loads, plain = np.zeros(5, np.int64), [0] * 5
    assert choose_targets(hashes, some, loads).tolist() == reference.route_two_choices(hashes.tolist(), some, plain)


@pytest.mark.parametrize("choices", [0, 2, 3, 5])
@given(HASHES, targets())
def test_the_compiled_loop_with_heads_equals_the_plain_one(choices: int, hashes: Hashes, some: Targets) -> None:
    pytest.importorskip("numba")
    loads, plain = np.zeros(some.workers, np.int64), [0] * some.workers
    sketch, lists = SpaceSaving(SMALL_SKETCH), reference.ReferenceSketch(SMALL_SKETCH)
    for part in np.array_split(hashes, 3):
        routed = head_choices.route_with_heads(part, some, loads, sketch, 0.3, choices)
        assert routed is not None
        assert routed.tolist() == reference.route_with_heads(part.tolist(), some, plain, lists, 0.3, choices)
    assert loads.tolist() == plain


@pytest.mark.parametrize("is_greedy", [False, True])
@given(HASHES, targets())
def test_the_compiled_loop_of_unsplit_keys_equals_the_plain_one(is_greedy: bool, hashes: Hashes, some: Targets) -> None:
    pytest.importorskip("numba")
    partitioner = partitioners.UnsplitPartitioner(some, is_greedy=is_greedy)
    plain, positions = [0] * some.workers, dict[int, int]()
    for part in np.array_split(hashes, 3):
        expected = reference.route_unsplit(part.tolist(), some, plain, positions, is_greedy=is_greedy)
        assert partitioner.partition(part).tolist() == expected
    assert partitioner.loads.tolist() == plain
    assert len(partitioner.assignments) == len(positions)


def test_many_keys_are_assigned_as_few_are() -> None:
    pytest.importorskip("numba")
    hashes, some = zipf(4_000, 3_000, 0.5), Targets.one_per_worker(7)
    partitioner = partitioners.UnsplitPartitioner(some, is_greedy=False)
    expected = reference.route_unsplit(hashes.tolist(), some, [0] * 7, {}, is_greedy=False)
    assert partitioner.partition(hashes).tolist() == expected


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_partitioner_gives_the_same_without_numba_or_divides_as_evenly(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes, some = zipf(3_000, 200), Targets(np.arange(12) % 4, seed=1)
    compiled = PARTITIONERS[name](some, KeyFrequencies.of(hashes))
    chosen = compiled.partition(hashes)
    disable_numba(monkeypatch)
    plain = PARTITIONERS[name](some, KeyFrequencies.of(hashes))
    if name in ("pkg", "w-choices"):
        plain.partition(hashes)
        assert np.abs(plain.loads - compiled.loads).max() <= 3
    else:
        assert plain.partition(hashes).tolist() == chosen.tolist()


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_row_is_counted_for_the_worker_of_its_target(name: str) -> None:
    hashes, some = zipf(2_000, 100), Targets(np.arange(10) % 3)
    partitioner = PARTITIONERS[name](some, KeyFrequencies.of(hashes))
    chosen = partitioner.partition(hashes)
    assert np.bincount(some.owners[chosen], minlength=3).tolist() == partitioner.loads.tolist()


@pytest.mark.parametrize("name", sorted(set(PARTITIONERS) - {"pair-split"}))
def test_parts_of_a_stream_are_routed_as_the_whole(name: str) -> None:
    hashes, some = zipf(40_000, 300), Targets.one_per_worker(30)
    whole, parts = (PARTITIONERS[name](some, KeyFrequencies.of(hashes)) for _ in range(2))
    cut = np.split(hashes, [1, 300, 20_000, 33_000])
    assert whole.partition(hashes).tolist() == np.concatenate([parts.partition(part) for part in cut]).tolist()


@pytest.mark.parametrize(
    ("name", "most"), [("hash", 1), ("potc", 1), ("on-greedy", 1), ("off-greedy", 1), ("pkg", 2), ("pair-split", 2)]
)
def test_a_key_is_on_as_many_workers_as_it_may(name: str, most: int) -> None:
    hashes = zipf(5_000, 40)
    chosen = PARTITIONERS[name](Targets.one_per_worker(8), KeyFrequencies.of(hashes)).partition(hashes)
    workers = [len({*chosen[hashes == key].tolist()}) for key in np.unique(hashes)]
    assert max(workers) == most


def test_shuffling_sends_rows_to_workers_in_turn() -> None:
    partitioner = partitioners.ShufflePartitioner(Targets.one_per_worker(3))
    hashes = zipf(4, 4)
    assert partitioner.partition(hashes).tolist() == [0, 1, 2, 0]
    assert partitioner.partition(hashes).tolist() == [1, 2, 0, 1]


def test_off_greedy_places_the_heaviest_keys_first() -> None:
    keys = np.array([1, 2, 3, 4], np.uint64)
    hashes = np.repeat(keys, [2, 5, 4, 3])
    partitioner = PARTITIONERS["off-greedy"](Targets.one_per_worker(2), KeyFrequencies.of(hashes))
    assert partitioner.partition(keys[[1, 2, 3, 0]]).tolist() == [0, 1, 1, 0]


@settings(max_examples=20)
@given(HASHES)
def test_off_greedy_assigns_as_the_plain_version(hashes: Hashes) -> None:
    rows = -np.sort(-KeyFrequencies.of(hashes).rows)
    assign: Callable[..., Any] | None = compiled_loops.load_compiled(
        "splitting.compiled_assignments", "assign_in_order"
    )
    if assign is not None:
        assert [*assign(rows, 3)] == reference.assign_in_order(rows.tolist(), 3)


def test_w_choices_balances_what_two_choices_cannot() -> None:
    hashes, some = zipf(200_000, 1_000, 1.2), Targets.one_per_worker(50)
    loads, others = np.zeros(50, np.int64), np.zeros(50, np.int64)
    choose_targets_with_heads(hashes, some, loads, create_sketch(50))
    choose_targets(hashes, some, others)
    heaviest = KeyFrequencies.of(hashes).rows.max() / len(hashes)
    assert imbalance(loads) < 1e-4
    assert imbalance(others) >= heaviest / 2 - 1 / 50


@pytest.mark.usefixtures("without_numba")
def test_without_numba_heads_are_divided_evenly_too() -> None:
    hashes, some = zipf(200_000, 1_000, 1.2), Targets(np.arange(100) % 50)
    loads = np.zeros(50, np.int64)
    chosen = choose_targets_with_heads(hashes, some, loads, create_sketch(50))
    assert np.bincount(some.owners[chosen], minlength=50).tolist() == loads.tolist()
    assert loads.max() - loads.min() <= 1
    light = np.unique(hashes)[KeyFrequencies.of(hashes).rows < head_share(50) * len(hashes) / 2]
    assert max(len({*chosen[hashes == key].tolist()}) for key in light) == 2


def test_loads_that_forget_let_two_choices_follow_a_change() -> None:
    some, loads = Targets.one_per_worker(2), np.array([1_000, 0])
    loads >>= 1
    choose_targets(zipf(500, 50), some, loads)
    assert loads.tolist() == [500, 500]


@pytest.mark.parametrize("loads", [np.zeros(3, np.int64), np.zeros(2), np.zeros((2, 1), np.int64)])
def test_loads_of_other_workers_are_refused(loads: Any) -> None:
    with pytest.raises(InvalidJob, match=r"not those of 2 workers. Use np.zeros\(2, np.int64\)"):
        choose_targets(zipf(5, 5), Targets.one_per_worker(2), loads)
    with pytest.raises(InvalidJob, match="not those of 2 workers"):
        choose_targets_with_heads(zipf(5, 5), Targets.one_per_worker(2), loads, create_sketch(2))


def count_choices(head: list[float], workers: int, tolerance: float) -> int:
    """The formula of D-Choices, term by term."""
    for d in range(max(2, int(np.ceil(head[0] * workers))), workers):
        for h in range(1, len(head) + 1):
            used = workers - workers * ((workers - 1) / workers) ** (h * d)
            rows = sum(head[:h]) + (used / workers) ** d * sum(head[h:]) + (used / workers) ** 2 * (1 - sum(head))
            if rows > used * (1 / workers + tolerance):
                break
        else:
            return d
    return workers


@pytest.mark.parametrize("workers", [2, 5, 10, 50])
@pytest.mark.parametrize("heaviest", [0.02, 0.1, 0.3, 0.9])
def test_the_number_of_choices_of_the_head_follows_the_formula(workers: int, heaviest: float) -> None:
    head = [heaviest, heaviest / 2, heaviest / 4][: 1 if heaviest == 0.9 else 3]
    found = head_choices.count_choices(np.array(head), workers)
    assert found == count_choices(head, workers, head_choices.TOLERANCE)
    assert 2 <= found <= workers
    assert head_choices.count_choices(np.zeros(0), workers) == 2


def test_d_choices_is_between_two_choices_and_all() -> None:
    hashes, some = zipf(60_000, 1_000, 1.2), Targets.one_per_worker(20)
    found = {}
    for name in ("pkg", "d-choices", "w-choices"):
        partitioner = PARTITIONERS[name](some, KeyFrequencies.of(hashes))
        chosen = partitioner.partition(hashes)
        found[name] = (
            imbalance(partitioner.loads),
            len(np.unique(np.stack([hashes, chosen.astype(np.uint64)]), axis=1).T),
        )
    assert found["pkg"][0] > 10 * found["d-choices"][0]
    assert found["pkg"][1] < found["d-choices"][1]
    assert found["w-choices"][0] <= found["d-choices"][0]


def test_the_head_is_what_a_fifth_of_a_worker_carries() -> None:
    assert head_share(10) == 1 / 50
    assert create_sketch(100).capacity >= 4 / head_share(100)
