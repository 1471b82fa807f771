"""State survives storage unchanged and independent, in an efficient format, and its size is estimated."""

import copy
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import storage
from elastic.operators import KeyedColumns, Operator, Timer
from elastic.operators.calls import UnitState
from elastic.operators.stage_runner import StageRunner
from elastic.operators.state_codec import NOTE
from elastic.operators.state_size import estimate_bytes
from elastic.operators.timers import Timers
from storage.codec import pack, read_header, unpack
from storage.errors import UnstorableState

SECRET = storage.Secret.of("a secret for saved states")
RUNNER = StageRunner(Operator(), key=("k",), input_schema=pa.schema([("k", pa.string())]), name="sample")


@dataclass
class Account:
    """A user's own class."""

    owner: str
    entries: list[int] = field(default_factory=list)


def columns() -> KeyedColumns:
    made = KeyedColumns("k string", {"count": "int64"})
    made.count("count", made.rows_for([f"key {number % 500}" for number in range(2_000)]))
    return made


VALUES: dict[str, tuple[Any, str]] = {
    "nothing": (None, "pickle"),
    "scalars by key": ({f"key {number}": number for number in range(1_000)}, "mapping"),
    "table": (pa.table({"k": ["a", "b"] * 500, "n": range(1_000)}), "arrow"),
    "batch": (pa.record_batch({"k": ["a"]}), "arrow"),
    "array": (np.arange(1_000), "numpy"),
    "arrays": ({"a": np.arange(1_000), "b": np.ones(5)}, "numpy"),
    "columns": (columns(), "numpy"),
    "lists by key": ({number: [number, str(number)] for number in range(1_000)}, "pickle"),
    "tuples by key": ({("a", number): (number, 0.5) for number in range(1_000)}, "pickle"),
    "objects": ({number: Account("me", [number] * 20) for number in range(300)}, "pickle"),
    "counter": (Counter("abracadabra" * 20), "pickle"),
    "queue": (deque(range(3_000)), "pickle"),
    "text": ("a text" * 100, "pickle"),
    "bytes": (b"bytes" * 100, "bytes"),
    "a dict with our own note": ({NOTE: 1, "value": 2}, "pickle"),
}


def plain(value: Any) -> Any:
    if isinstance(value, KeyedColumns):
        return value.to_table().to_pylist()
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def through_storage(captured: Any) -> tuple[Any, str, int]:
    data = pack({"state": captured}, key="k", secret=SECRET, compression="none")
    codec = read_header(data, key="k", secret=SECRET).parts["state"].codec
    return unpack(data, key="k", secret=SECRET).parts["state"], codec, len(data)


@pytest.mark.parametrize("timed", [False, True], ids=["", "with timers"])
@pytest.mark.parametrize("name", VALUES)
def test_a_state_survives_storage_with_its_timers(name: str, timed: bool) -> None:
    value, expected_codec = VALUES[name]
    timers = Timers()
    if timed:
        timers.set(Timer(7, "event", "n", ("a", None)))
    saved, codec, _ = through_storage(RUNNER.capture(UnitState(value, timers)))
    back = RUNNER.restore(saved)
    assert type(back.value) is type(value)
    assert plain(back.value) == plain(value)
    assert back.timers.to_columns()["event.keys"] == ([("a", None)] if timed else [])
    if not timed:
        assert codec == expected_codec


@pytest.mark.parametrize("name", ["scalars by key", "array", "arrays", "columns", "lists by key", "objects", "queue"])
def test_captured_and_restored_states_are_independent(name: str) -> None:
    value = RUNNER.restore(RUNNER.capture(UnitState(VALUES[name][0]))).value
    before = copy.deepcopy(plain(value))
    captured = RUNNER.capture(UnitState(value))
    change(value)
    first = RUNNER.restore(through_storage(captured)[0])
    assert plain(first.value) == before != plain(value)
    change(first.value)
    assert plain(RUNNER.restore(captured).value) == before


def change(value: Any) -> None:
    if isinstance(value, KeyedColumns):
        value.count("count", value.rows_for(["key 1", "a new key"]))
    elif isinstance(value, np.ndarray):
        value += 1
    elif isinstance(value, deque):
        value.append(1)
    else:
        key, first = next(iter(value.items()))
        if isinstance(first, list):
            first.append(1)
        elif isinstance(first, Account):
            first.entries.append(1)
        else:
            value[key] = first + 1


def test_a_state_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(UnstorableState, match="generator"):
        RUNNER.capture(UnitState(number for number in (1, 2)))


@pytest.mark.parametrize("name", [name for name in VALUES if name not in ("nothing", "batch")])
def test_the_estimated_size_is_that_of_the_stored_state(name: str) -> None:
    value, _ = VALUES[name]
    _, _, stored = through_storage(RUNNER.capture(UnitState(value)))
    assert RUNNER.size(UnitState(value)) == pytest.approx(stored, rel=0.6, abs=600)


def test_the_size_of_a_large_state_is_estimated_from_a_sample() -> None:
    class Watched(list[float]):
        looks = 0

        def __iter__(self) -> Any:
            for number in range(len(self)):
                type(self).looks += 1
                yield self[number]

    large = {number: Watched([0.5] * 10_000) for number in range(1_000)}
    assert estimate_bytes(large) == pytest.approx(1_000 * 10_000 * 8, rel=0.01)
    assert Watched.looks < 1_000


def test_the_sample_includes_old_and_new_entries() -> None:
    mixed = {number: "x" * (1_000 if number < 5_000 else 10) for number in range(10_000)}
    assert estimate_bytes(mixed) == pytest.approx(sum(map(len, mixed.values())), rel=0.1)


def test_timers_add_to_the_size() -> None:
    state = RUNNER.new_state()
    empty = RUNNER.size(state)
    state.timers.set(Timer(1, "event"))
    assert RUNNER.size(state) > empty
