"""Initial state: each row once, before the first rows of its key, for keys without rows as well."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from elastic.errors import InvalidJob, UnknownColumn
from tests.elastic.processors.samples import Processor, World, readings

MakeWorld = Callable[..., World]
KEYS = ("0", "1", "3")
INITIAL = [{"id": "0", "start": 789}, {"id": "3", "start": 987}]


class Sums(Processor):
    """Adds temperatures to what a key starts with."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.sum = handle.getValueState("sum", "total int")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        assert not self.sum.exists()
        if self.pandas:
            assert list(initialState.columns) == ["id", "start"]
            assert list(initialState.index) == list(range(len(initialState)))
        else:
            assert initialState.asDict().keys() == {"id", "start"}
        assert self.values(iter([initialState]), "id")[0] == key[0]
        self.sum.update((sum(self.values(iter([initialState]), "start")),))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        total = (self.sum.get() or (0,))[0] + sum(self.values(rows, "temperature"))
        self.sum.update((total,))
        yield self.emit(id=key[0], value=str(total))


def test_keys_start_from_their_initial_state(world: MakeWorld, form: str) -> None:
    run = world(Sums(form), "id string, value string", initial_state=INITIAL)
    assert run.run(readings(("0", 123), ("0", 46), ("1", 146), ("1", 346))) == [
        {"id": "0", "value": str(789 + 123 + 46)},
        {"id": "1", "value": str(146 + 346)},
    ]
    assert run.state("3", "sum") == {"total": 987}
    assert run.run(readings(("0", 67), ("3", 12)), KEYS) == [
        {"id": "0", "value": str(789 + 123 + 46 + 67)},
        {"id": "3", "value": str(987 + 12)},
    ]


def test_the_initial_state_may_come_without_rows(world: MakeWorld, form: str) -> None:
    run = world(Sums(form), "id string, value string", initial_state=INITIAL)
    assert run.run() == []
    assert run.run(readings(("3", 13)), KEYS) == [{"id": "3", "value": "1000"}]


def test_an_empty_initial_state_changes_nothing(world: MakeWorld, form: str) -> None:
    run = world(Sums(form), "id string, value string", initial_state=[], initial_schema="id string, start int")
    assert run.run(readings(("3", 13))) == [{"id": "3", "value": "13"}]


def test_timers_of_the_initial_state_fire_in_the_first_batch(world: MakeWorld, form: str) -> None:
    class WithTimers(Sums):
        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
            super().handleInitialState(key, initialState, timerValues)
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() - 1)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
            yield self.emit(id=f"{key[0]}-expired", value=str(expiredTimerInfo.getExpiryTimeInMs()))

    run = world(WithTimers(form), "id string, value string", initial_state=INITIAL, time_mode="processingTime")
    assert run.run(readings(("0", 123), ("1", 146)), timestamp_ms=5_000) == [
        {"id": "0", "value": "912"},
        {"id": "0-expired", "value": "4999"},
        {"id": "1", "value": "146"},
        {"id": "3-expired", "value": "4999"},
    ]
    assert run.run(readings(("0", 67), ("3", 12)), KEYS) == [{"id": "0", "value": "979"}, {"id": "3", "value": "999"}]


class Lists(Processor):
    """Collects all rows of the initial state of a key; in pandas they are in one frame."""

    def init(self, handle: Any) -> None:
        self.list = handle.getListState("list", "n int")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        for number in self.values(iter([initialState]), "start"):
            self.list.appendValue((number,))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        list(rows)
        yield self.emit(id=key[0], value=str([n for (n,) in self.list.get()]))


def test_a_key_may_have_many_rows_of_initial_state(world: MakeWorld, form: str) -> None:
    initial = [{"start": n, "id": key} for key in ("0", "1") for n in (20, 20, 111)]
    run = world(Lists(form), "id string, value string", initial_state=initial)
    assert run.run(readings(("0", 1))) == [{"id": "0", "value": "[20, 20, 111]"}]
    assert run.run(readings(("0", 1), ("1", 1)), KEYS) == [
        {"id": "0", "value": "[20, 20, 111]"},
        {"id": "1", "value": "[20, 20, 111]"},
    ]


def test_initial_state_is_never_late(world: MakeWorld, form: str) -> None:
    run = world(
        Sums(form),
        "id string, value string",
        schema="id string, temperature int, at long",
        initial_state=INITIAL,
        time_mode="EventTime",
        event_time="at",
    )
    assert run.run([{"id": "0", "temperature": 1, "at": 5_000}]) == [{"id": "0", "value": "790"}]
    assert run.run([{"id": "3", "temperature": 1, "at": 5_000}], KEYS) == []
    assert run.run([{"id": "3", "temperature": 1, "at": 6_000}], KEYS) == [{"id": "3", "value": "988"}]


def test_the_initial_state_has_the_key_of_the_stream() -> None:
    with pytest.raises(UnknownColumn, match="'id'"):
        World("nothing", Sums(), "id string, value string", initial_state=[{"start": 1}]).run()
    with pytest.raises(InvalidJob, match="int64 in the initial state and string in the stream"):
        World("nothing", Sums(), "id string, value string", initial_state=[{"id": 1, "start": 1}]).run()
