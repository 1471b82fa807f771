"""Packed states and handles that the tests of loading, saving and releasing share."""

import time
from collections.abc import Callable
from typing import Any

from elastic.core.ids import NO_BATCH, Batch, UnitId
from elastic.core.messages import UnitHandle
from elastic.core.steps import Position
from storage.state import PackedState, StateManager, StateRef

LEASE = "000000000001-000000001-ab"
START = Position(NO_BATCH, 0)


def pack(manager: StateManager, task: int, state: Any = None) -> PackedState:
    return manager.pack(UnitId(0, task), state or {"n": task}, batch=3, lease=LEASE)


def handle_of(ref: StateRef, source: str | None = "source:1") -> UnitHandle:
    return UnitHandle(ref.unit, ref, Batch(ref.batch), START, source)


def empty_handle(task: int) -> UnitHandle:
    return UnitHandle(UnitId(0, task), None, NO_BATCH, START)


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"timed out after {seconds:g} s"
        time.sleep(0.001)
