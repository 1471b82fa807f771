"""Writers and readers at the same time, on every store."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from pathlib import Path
from threading import Event

import pytest

import storage.stores
from storage.stores import Store
from tests.storage.stores.children import claim_each, in_processes, increment, processes
from tests.storage.stores.racing import WRITERS, winners, won
from tests.storage.stores.reading import bytes_at

KEYS = [f"{number}.bin" for number in range(25)]  # one a round
SIZES = [10, 300_000]


@pytest.fixture
def judge(store: Store, kind: str) -> Store:
    """A store whose promise of conditional writes can be tested."""
    if kind == "moto":
        pytest.skip("moto checks the condition and stores without a lock in between, so two writers can win")
    if not store.conditional:
        pytest.skip("this store promises no conditional writes")
    return store


@pytest.mark.parametrize("size", SIZES)
def test_of_eight_writers_where_nothing_is_exactly_one_wins(judge: Store, size: int) -> None:
    contents = [bytes([writer]) * size for writer in range(WRITERS)]

    def first(key: str, writer: int) -> bool:
        return won(judge.put_if_absent, key, contents[writer])

    for key in KEYS:
        (winner,) = winners(partial(first, key))
        assert bytes_at(judge, key) == contents[winner]


@pytest.mark.parametrize("size", SIZES)
def test_of_eight_writers_over_one_version_exactly_one_wins(judge: Store, size: int) -> None:
    def content(number: int, writer: int) -> bytes:
        # Different in every round, because an S3 store cannot tell two writes of the same bytes apart.
        return f"{number} {writer}".encode().ljust(size)

    def swap(number: int, version: str, writer: int) -> bool:
        return won(judge.compare_and_swap, "race.bin", content(number, writer), version)

    version = judge.put("race.bin", b"start")
    for number in range(len(KEYS)):
        (winner,) = winners(partial(swap, number, version))
        stored = judge.get("race.bin")
        assert stored.data == content(number, winner)
        version = stored.version


def test_a_swap_never_overwrites_a_put_that_it_has_not_seen(judge: Store) -> None:
    def put_or_swap(key: str, version: str, writer: int) -> bool:
        if writer == 0:
            judge.put(key, b"put")
            return False
        return won(judge.compare_and_swap, key, f"swapped by {writer}".encode(), version)

    for key in KEYS:
        swapped = winners(partial(put_or_swap, key, judge.put(key, b"start")))
        assert len(swapped) <= 1
        assert bytes_at(judge, key) == b"put"


def test_an_object_is_never_seen_half_written(store: Store) -> None:
    size = 1_000_000
    store.put("busy.bin", bytes(size))
    enough = Event()

    def overwrite() -> None:
        contents = (bytes([number]) * size for number in cycle(range(256)))
        while not enough.is_set():
            store.put("busy.bin", next(contents))

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(overwrite)
        try:
            seen: set[int] = set()
            while len(seen) < 12:
                data = bytes(store.get("busy.bin").data)
                assert data == data[:1] * size
                assert [entry.size for entry in store.list("busy")] == [size]
                assert not writing.done()
                seen.add(data[0])
        finally:
            enough.set()
        writing.result(30)


def test_of_eight_processes_where_nothing_is_exactly_one_wins(tmp_path: Path) -> None:
    in_processes(claim_each, tmp_path.as_uri(), KEYS, processes.Barrier(WRITERS))
    store = storage.stores.open(tmp_path.as_uri())
    wins = [entry.key.removeprefix("won/").split("-") for entry in store.list("won/")]
    assert sorted(key for _, key in wins) == sorted(KEYS)
    assert all(bytes_at(store, key) == bytes([int(writer)]) * 100_000 for writer, key in wins)
    store.close()


def test_no_increment_of_eight_processes_is_lost(tmp_path: Path) -> None:
    store = storage.stores.open(tmp_path.as_uri())
    store.put("count.bin", b"0")
    in_processes(increment, tmp_path.as_uri(), "count.bin", 12)
    assert bytes_at(store, "count.bin") == str(12 * WRITERS).encode()
    store.close()
