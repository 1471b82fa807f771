"""The garbage collector rests while an operator is called for many keys, and only then."""

import gc
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from elastic.errors import OperatorFailed
from elastic.operators import KeyedOperator
from elastic.operators.garbage import pause_collector
from elastic.operators.stage_runner import StageRunner
from elastic.operators.testing import OperatorTester


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """Tests of the whole suite may run without the collector."""
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    if not was_enabled:
        gc.disable()


class Watches(KeyedOperator):
    """Emits whether the collector works."""

    output_schema = "collects boolean"

    def handle_key(self, key: Any, _rows: Any, _state: Any, _context: Any) -> list[dict[str, Any]]:
        if key == "bad":
            raise ValueError("bad")
        return [{"collects": gc.isenabled()}]


def test_the_collector_rests_during_a_step_and_goes_on_after_it() -> None:
    tester = OperatorTester(Watches(), key="key")
    assert tester.run([[{"key": "a"}]]) == [{"collects": False}]
    assert gc.isenabled()
    with pytest.raises(OperatorFailed):
        tester.run([[{"key": "bad"}]])
    assert gc.isenabled()


class Remembers:
    """A value that notes, when it is unpickled, whether the collector works."""

    def __init__(self) -> None:
        self.collects = gc.isenabled()

    def __setstate__(self, _: Any) -> None:
        self.collects = gc.isenabled()


def test_the_collector_rests_while_a_state_is_decoded() -> None:
    runner = StageRunner(Watches(), key=["key"], input_schema=pa.schema({"key": pa.string()}), name="watched")
    state = runner.new_state()
    state.value["a",] = Remembers()
    assert state.value["a",].collects
    assert not runner.restore(runner.capture(state)).value["a",].collects
    assert gc.isenabled()


def test_a_disabled_collector_stays_disabled() -> None:
    gc.disable()
    with pause_collector():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_blocks_within_blocks_end_with_the_outer_one() -> None:
    with pause_collector():
        with pause_collector():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
