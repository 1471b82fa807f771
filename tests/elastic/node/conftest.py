"""Fixtures of the tests of a node's parts."""

from collections.abc import Iterator

import pytest

import storage
from storage import Secret
from storage.state import StateManager


@pytest.fixture
def manager() -> Iterator[StateManager]:
    manager = StateManager(storage.open("memory:"), Secret.of("a secret of this test"), "moved", threads=2)
    yield manager
    manager.close()
