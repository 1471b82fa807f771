"""Any sequence of calls does to a store what it does to a plain dict."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import storage.stores
from storage.errors import AlreadyExists, ObjectMissing
from storage.stores import ObjectInfo
from tests.storage.stores.helpers import bytes_at

# Few keys, so that calls meet; some share folders that come and go.
KEYS = ["a.bin", "a/b.bin", "a/b/c.bin", "a/b/d.bin", "a-b/e.bin"]
keys = st.sampled_from(KEYS)
contents = st.sampled_from([b"", b"x", b"yy" * 50_000]) | st.binary(max_size=20)


class StoreAndDict(RuleBasedStateMachine):
    """The store under test next to what it should hold."""

    kind = "memory"

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.store = storage.stores.open("memory:" if self.kind == "memory" else self.folder.as_uri())
        self.model: dict[str, bytes] = {}

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

    @rule(key=keys, content=contents)
    def put(self, key: str, content: bytes) -> None:
        self.store.put(key, content)
        self.model[key] = content

    @rule(key=keys, content=contents)
    def put_if_absent(self, key: str, content: bytes) -> None:
        if key in self.model:
            with pytest.raises(AlreadyExists):
                self.store.put_if_absent(key, content)
        else:
            self.store.put_if_absent(key, content)
            self.model[key] = content

    @rule(key=keys, start=st.integers(0, 30), length=st.integers(0, 30))
    def get(self, key: str, start: int, length: int) -> None:
        if key in self.model:
            assert bytes_at(self.store, key) == self.model[key]
            assert bytes(self.store.get_range(key, start, start + length)) == self.model[key][start : start + length]
        else:
            with pytest.raises(ObjectMissing):
                self.store.get(key)

    @rule(unwanted=st.lists(keys))
    def delete(self, unwanted: list[str]) -> None:
        self.store.delete(unwanted)
        for key in unwanted:
            self.model.pop(key, None)

    @precondition(lambda self: self.kind == "file")
    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = storage.stores.open(self.folder.as_uri())

    @rule(key=keys, end=st.integers(0, 10))
    def list_some(self, key: str, end: int) -> None:
        listed = [entry.key for entry in self.store.list(key[:end])]
        assert listed == sorted(found for found in self.model if found.startswith(key[:end]))

    @invariant()
    def the_listing_is_the_dict(self) -> None:
        if hasattr(self, "store"):
            assert list(self.store.list()) == [ObjectInfo(key, len(self.model[key])) for key in sorted(self.model)]


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_any_sequence_of_calls_does_what_it_does_to_a_dict(kind: str) -> None:
    machine = type(f"{kind.title()}AndDict", (StoreAndDict,), {"kind": kind})
    brisk = settings(max_examples=max(25, settings().max_examples // 5), stateful_step_count=25)
    run_state_machine_as_test(machine, settings=brisk)
