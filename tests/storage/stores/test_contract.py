"""What every store promises: memory, files, real MinIO and moto. Races have a file of their own."""

from collections.abc import Callable

import pytest

from storage.errors import AlreadyExists, InvalidStorageInput, ObjectMissing
from storage.stores import ObjectInfo, Store
from tests.storage.stores.helpers import bytes_at

KEY = "operator/task-7/state.bin"
CONTENTS = [b"", b"\0", b"hello", bytes(range(256)), bytes(range(256)) * 1200]
BAD_KEYS = ["", "/", "a", "a/b", "/a.bin", "a/", "a/.bin", "a//b.bin", "../a.bin", "a/../b.bin", "a.b/c.bin", "ä.bin"]

CALLS: list[Callable[[Store, str], object]] = [
    lambda store, key: store.put(key, b""),
    lambda store, key: store.put_if_absent(key, b""),
    lambda store, key: store.get(key),
    lambda store, key: store.get_range(key, 0, 1),
    lambda store, key: store.delete([KEY, key]),
]


def test_a_store_is_a_store(store: Store) -> None:
    assert isinstance(store, Store)


@pytest.mark.parametrize("content", CONTENTS, ids=len)
def test_an_object_is_read_as_it_was_put(store: Store, content: bytes) -> None:
    store.put(KEY, content)
    assert bytes_at(store, KEY) == content
    assert list(store.list()) == [ObjectInfo(KEY, len(content))]


@pytest.mark.parametrize("wrapped", [bytes, bytearray, memoryview, lambda data: memoryview(data).cast("I")])
def test_any_buffer_can_be_put(store: Store, wrapped: Callable[[bytes], bytes | bytearray | memoryview]) -> None:
    content = bytes(range(64))
    store.put(KEY, wrapped(content))
    assert bytes_at(store, KEY) == content


def test_a_buffer_may_be_used_again_after_the_put(store: Store) -> None:
    buffer = bytearray(b"before")
    store.put(KEY, buffer)
    buffer[:] = b"after!"
    assert bytes_at(store, KEY) == b"before"


def test_reads_return_plain_bytes(store: Store) -> None:
    store.put(KEY, b"abc")
    for data in (store.get(KEY), store.get_range(KEY, 0, 2)):
        assert isinstance(data, memoryview)
        assert (data.format, data.itemsize, data.ndim, data.contiguous) == ("B", 1, 1, True)


def test_a_put_replaces_what_was_there(store: Store) -> None:
    store.put(KEY, b"a longer first one")
    store.put(KEY, b"second")
    assert bytes_at(store, KEY) == b"second"


def test_bytes_that_were_read_outlive_their_object(store: Store) -> None:
    store.put(KEY, b"first" * 1000)
    data = store.get(KEY)
    store.put(KEY, b"other" * 900)
    store.delete([KEY])
    assert data == b"first" * 1000


def test_a_missing_object_is_reported_with_its_key(store: Store) -> None:
    store.put("operator/task-7/state.bin.old", b"")
    reads: list[Callable[[], memoryview]] = [
        lambda: store.get(KEY),
        lambda: store.get_range(KEY, 0, 1),
        lambda: store.get_range(KEY, 0, 0),
    ]
    for ask in reads:
        with pytest.raises(ObjectMissing) as missing:
            ask()
        assert (missing.value.key, missing.value.store) == (KEY, store.url)


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, 10), (0, 4), (3, 7), (9, 10), (0, 0), (5, 5), (10, 10), (8, 99), (10, 20), (50, 60), (50, 50)],
)
def test_a_range_is_what_a_slice_is(store: Store, start: int, stop: int) -> None:
    store.put(KEY, b"0123456789")
    assert bytes(store.get_range(KEY, start, stop)) == b"0123456789"[start:stop]


def test_any_range_of_an_empty_object_is_empty(store: Store) -> None:
    store.put(KEY, b"")
    assert [len(store.get_range(KEY, start, start + 1)) for start in (0, 1)] == [0, 0]


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 4), (-3, -1)])
def test_a_range_that_runs_backwards_or_starts_before_the_object_is_refused(
    store: Store, start: int, stop: int
) -> None:
    store.put(KEY, b"0123456789")
    with pytest.raises(InvalidStorageInput, match="range"):
        store.get_range(KEY, start, stop)


# Names around the slash: '-' and '.' sort before it, digits and letters after it.
LISTED = [
    "a-b/x.bin",
    "a.bin",
    "a/1.bin",
    "a/b-c.bin",
    "a/b.bin",
    "a/b.bin.old",
    "a/b/c.bin",
    "a/b0.bin",
    "a0/z.bin",
    "b.c",
]


def test_a_listing_is_in_order_of_the_keys(store: Store) -> None:
    assert sorted(LISTED) == LISTED
    for size, key in enumerate(reversed(LISTED)):
        store.put(key, bytes(size))
    assert list(store.list()) == [ObjectInfo(key, len(LISTED) - 1 - place) for place, key in enumerate(LISTED)]


@pytest.mark.parametrize("prefix", ["a", "a/", "a/b", "a/b.", "a/b/", "a/b/c.bin", "a/b/c.bin.no", "c/", "b", "a-"])
def test_a_prefix_may_end_anywhere_in_a_key(store: Store, prefix: str) -> None:
    for key in LISTED:
        store.put(key, b"")
    assert [entry.key for entry in store.list(prefix)] == [key for key in LISTED if key.startswith(prefix)]


def test_an_empty_store_lists_nothing(store: Store) -> None:
    assert list(store.list()) == []
    assert list(store.list("operator/")) == []


@pytest.mark.parametrize("prefix", ["/", "a//", "../a", "a.b/", "ä", "a\\"])
def test_a_prefix_that_begins_no_key_is_refused_before_the_first_entry(store: Store, prefix: str) -> None:
    with pytest.raises(InvalidStorageInput):
        store.list(prefix)


def test_deleting_is_idempotent(store: Store) -> None:
    store.put(KEY, b"")
    store.put("operator/kept.bin", b"")
    for _ in range(2):
        store.delete([KEY, "operator/never/there.bin"])
        assert [entry.key for entry in store.list()] == ["operator/kept.bin"]
    store.delete([])
    with pytest.raises(ObjectMissing):
        store.get(KEY)


def test_many_objects_are_deleted_at_once(store: Store) -> None:
    keys = [f"many/{number}.bin" for number in range(30)]
    for key in keys:
        store.put(key, b"")
    store.delete(key for key in keys[1:])
    assert [entry.key for entry in store.list()] == keys[:1]


def test_an_object_can_be_put_again_after_its_deletion(store: Store) -> None:
    store.put(KEY, b"old")
    store.delete([KEY])
    store.put_if_absent(KEY, b"new")
    assert bytes_at(store, KEY) == b"new"


def test_put_if_absent_succeeds_once(store: Store) -> None:
    store.put_if_absent(KEY, b"first")
    with pytest.raises(AlreadyExists) as lost:
        store.put_if_absent(KEY, b"second")
    assert (lost.value.key, lost.value.store) == (KEY, store.url)
    assert bytes_at(store, KEY) == b"first"


@pytest.mark.parametrize("key", BAD_KEYS)
def test_a_bad_key_is_refused_by_every_call_and_changes_nothing(store: Store, key: str) -> None:
    store.put(KEY, b"kept")
    for call in CALLS:
        with pytest.raises(InvalidStorageInput):
            call(store, key)
    assert bytes_at(store, KEY) == b"kept"


def test_one_key_is_not_mistaken_for_a_list_of_keys(store: Store) -> None:
    store.put(KEY, b"")
    with pytest.raises(InvalidStorageInput):
        store.delete(KEY)
    assert [entry.key for entry in store.list()] == [KEY]


def test_every_call_takes_a_timeout(store: Store) -> None:
    store.put(KEY, b"12", timeout=30)
    store.put_if_absent("operator/other.bin", b"0", timeout=30)
    assert bytes(store.get(KEY, timeout=30)) == b"12"
    assert bytes(store.get_range(KEY, 1, 2, timeout=30)) == b"2"
    assert len(list(store.list(timeout=30))) == 2
    store.delete([KEY], timeout=30)
    assert len(list(store.list(timeout=30.5))) == 1


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_a_timeout_that_leaves_no_time_is_refused(store: Store, seconds: float) -> None:
    with pytest.raises(InvalidStorageInput, match="timeout"):
        store.put(KEY, b"", timeout=seconds)
    with pytest.raises(InvalidStorageInput, match="timeout"):
        store.list(timeout=seconds)


def test_conditional_writes_hold_against_other_processes(store: Store) -> None:
    assert store.conditional is True


def test_closing_twice_is_closing_once(store_to_close: Store) -> None:
    store_to_close.put(KEY, b"")
    store_to_close.close()
    store_to_close.close()


def test_the_url_and_the_repr_hold_no_credential(store: Store, kind: str, request: pytest.FixtureRequest) -> None:
    schemes = {"memory": "memory:", "file": "file:///"}
    assert store.url.startswith(schemes.get(kind, "s3://"))
    if kind not in schemes:
        settings = request.getfixturevalue(kind).settings()
        for secret in (settings["access_key"], settings["secret_key"]):
            assert secret not in store.url + repr(store)
