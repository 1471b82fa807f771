"""Writers and readers at the same time, on every store."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from pathlib import Path
from threading import Event

import pytest

import storage.stores
from storage.stores import Store
from tests.storage.stores.children import claim_each, in_processes, processes
from tests.storage.stores.helpers import WRITERS, bytes_at, winners, won

KEYS = [f"{number}.bin" for number in range(25)]  # one a round
SIZES = [10, 300_000]


@pytest.fixture
def conditional_store(store: Store, kind: str) -> Store:
    """A store whose promise of conditional writes can be tested."""
    if kind == "moto":
        pytest.skip("moto checks the condition and stores without a lock in between, so two writers can win")
    if not store.conditional:
        pytest.skip("this store promises no conditional writes")
    return store


@pytest.mark.parametrize("size", SIZES)
def test_exactly_one_of_eight_threads_creates_an_object(conditional_store: Store, size: int) -> None:
    contents = [bytes([writer]) * size for writer in range(WRITERS)]

    def first(key: str, writer: int) -> bool:
        return won(conditional_store.put_if_absent, key, contents[writer])

    for key in KEYS:
        (winner,) = winners(partial(first, key))
        assert bytes_at(conditional_store, key) == contents[winner]


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
                data = bytes(store.get("busy.bin"))
                assert data == data[:1] * size
                assert [entry.size for entry in store.list("busy")] == [size]
                assert not writing.done()
                seen.add(data[0])
        finally:
            enough.set()
        writing.result(30)


def test_exactly_one_of_eight_processes_creates_an_object(tmp_path: Path) -> None:
    in_processes(claim_each, tmp_path.as_uri(), KEYS, processes.Barrier(WRITERS))
    store = storage.stores.open(tmp_path.as_uri())
    wins = [entry.key.removeprefix("won/").split("-") for entry in store.list("won/")]
    assert sorted(key for _, key in wins) == sorted(KEYS)
    assert all(bytes_at(store, key) == bytes([int(writer)]) * 100_000 for writer, key in wins)
    store.close()
