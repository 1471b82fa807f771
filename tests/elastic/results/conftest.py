"""Fixtures: a secret, and stores that keep their objects over a restart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import storage
from storage.codec import Secret
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Store


@pytest.fixture
def secret() -> Secret:
    return Secret.of("a secret for tests only")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(params=["memory", "file"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = storage.open("memory:" if request.param == "memory" else tmp_path.as_uri())
    yield opened
    opened.close()
