"""Timers and times to live: they follow the time of the batches, so a replay repeats them."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from elastic.errors import OperatorFailed
from elastic.operators.testing import InputBatch
from tests.elastic.processors.samples import Processor, World, in_order, readings

MakeWorld = Callable[..., World]
OUT = "id string, what string"
KEYS = ("0", "1")


class Sessions(Processor):
    """Sets a timer with the first row of a key, and ends the session when it fires."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.seen = handle.getValueState("seen", "n int")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        seen = (self.seen.get() or (0,))[0] + len(self.values(rows, "temperature"))
        self.seen.update((seen,))
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 5_000)
        yield self.emit(id=key[0], what=f"{seen} {sorted(self.handle.listTimers())}")

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        assert timerValues.getCurrentProcessingTimeInMs() >= expiredTimerInfo.getExpiryTimeInMs()
        seen = self.seen.get()
        self.seen.clear()
        yield self.emit(id=key[0], what=f"expired {expiredTimerInfo.getExpiryTimeInMs()} {seen}")


def test_processing_time_timers_fire_after_the_rows_of_their_batch(world: MakeWorld, form: str) -> None:
    run = world(Sessions(form), OUT, time_mode="ProcessingTime")
    assert run.run(readings(("0", 1)), timestamp_ms=0) == [{"id": "0", "what": "1 [5000]"}]
    assert run.run(readings(("0", 1), ("1", 1)), KEYS, timestamp_ms=4_000) == [
        {"id": "0", "what": "2 [5000, 9000]"},
        {"id": "1", "what": "1 [9000]"},
    ]
    # The row is counted before the timer clears the count, and the timer of the same key at 9,000 stays.
    assert run.run(readings(("0", 1)), KEYS, timestamp_ms=6_000) == [
        {"id": "0", "what": "3 [5000, 9000, 11000]"},
        {"id": "0", "what": "expired 5000 (3,)"},
    ]
    assert run.state("0", "timers") == [9_000, 11_000]
    assert run.run((), KEYS, timestamp_ms=9_000) == [
        {"id": "0", "what": "expired 9000 None"},
        {"id": "1", "what": "expired 9000 (1,)"},
    ]
    assert run.run((), KEYS, timestamp_ms=10_999) == []
    assert run.run((), KEYS, timestamp_ms=11_000) == [{"id": "0", "what": "expired 11000 None"}]
    assert run.tester.tester.state("0") is None


class Alarms(Processor):
    """Does with timers what the rows say."""

    def init(self, handle: Any) -> None:
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        for number in self.values(rows, "temperature"):
            if number > 0:
                self.handle.registerTimer(number)
            else:
                self.handle.deleteTimer(-number)
        yield self.emit(id=key[0], what=str(list(self.handle.listTimers())))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        expiry = expiredTimerInfo.getExpiryTimeInMs()
        if expiry % 10 == 1:
            self.handle.registerTimer(expiry + 1)  # due already
            self.handle.registerTimer(expiry)  # the one that fires
        if expiry % 10 == 3:
            self.handle.deleteTimer(expiry + 1)
        yield self.emit(id=key[0], what=f"{expiry} {list(self.handle.listTimers())}")


def test_a_handler_of_timers_gets_its_arguments_by_name(world: MakeWorld, form: str) -> None:
    class Reordered(Alarms):
        def handleExpiredTimer(  # type: ignore[override] # which Spark does not notice
            self, *, expiredTimerInfo: Any, timerValues: Any, key: Any
        ) -> Iterator[Any]:
            yield self.emit(id=key[0], what=str(expiredTimerInfo.getExpiryTimeInMs()))

    run = world(Reordered(form), OUT, time_mode="processingtime")
    run.run(readings(("0", 70_000)))
    assert run.run((), KEYS, timestamp_ms=80_000) == [{"id": "0", "what": "70000"}]


def test_timers_are_a_set_for_each_key(world: MakeWorld, form: str) -> None:
    run = world(Alarms(form), OUT, time_mode="processingtime")
    rows = readings(("0", 70_000), ("0", 50_000), ("0", 70_000), ("1", 50_000), ("1", -60_000), ("1", -50_000))
    assert run.run(rows) == [{"id": "0", "what": "[50000, 70000]"}, {"id": "1", "what": "[]"}]
    assert run.run((), KEYS, timestamp_ms=80_000) == in_order(
        [{"id": "0", "what": "50000 [50000, 70000]"}, {"id": "0", "what": "70000 [70000]"}]
    )


def test_a_timer_set_by_a_timer_fires_in_the_next_batch(world: MakeWorld, form: str) -> None:
    run = world(Alarms(form), OUT, time_mode="processingtime")
    run.run(readings(("0", 1_001)))
    assert run.run((), KEYS, timestamp_ms=2_000) == [{"id": "0", "what": "1001 [1001, 1002]"}]
    assert run.run((), KEYS, timestamp_ms=3_000) == [{"id": "0", "what": "1002 [1002]"}]
    assert run.run((), KEYS, timestamp_ms=4_000) == []


def test_a_due_timer_fires_although_another_one_of_its_batch_deletes_it(form: str, world: MakeWorld) -> None:
    run = world(Alarms(form), OUT, time_mode="processingtime")
    run.run(readings(("0", 1_003), ("0", 1_004)))
    fired = [{"id": "0", "what": "1003 [1003]"}, {"id": "0", "what": "1004 []"}]
    assert run.run((), KEYS, timestamp_ms=2_000) == fired


def test_a_timer_in_the_past_fires_in_its_own_batch(world: MakeWorld, form: str) -> None:
    run = world(Alarms(form), OUT, time_mode="processingtime")
    run.run(readings(("1", 99_999_999)))
    late = readings(("0", 5))
    assert run.run(late, KEYS, timestamp_ms=9_000) == [{"id": "0", "what": "5 [5]"}, {"id": "0", "what": "[5]"}]


class Newest(Processor):
    """Emits the newest event time, and sets a timer at the watermark that it sees."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.newest = handle.getValueState("newest", "at string")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        seconds = [int(at.timestamp()) for at in self.values(rows, "at")]
        newest = max(seconds + [int(at) for (at,) in [self.newest.get() or ("0",)]])
        self.newest.update((newest,))  # becomes text, as its schema says
        self.handle.registerTimer(timerValues.getCurrentWatermarkInMs())
        yield self.emit(id=key[0], what=str((newest, min(seconds))))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        self.newest.clear()
        self.handle.deleteTimer(expiredTimerInfo.getExpiryTimeInMs())
        yield self.emit(id=f"{key[0]}-expired", what=str(expiredTimerInfo.getExpiryTimeInMs()))


def events(*seconds: int, key: str = "a") -> list[dict[str, Any]]:
    return [{"id": key, "at": datetime.fromtimestamp(second, UTC)} for second in seconds]


EVENTS: dict[str, Any] = {"schema": "id string, at timestamp", "event_time": "at"}


def test_event_time_drops_late_rows_and_fires_timers_at_the_watermark(world: MakeWorld, form: str) -> None:
    run = world(Newest(form), OUT, time_mode="EventTime", watermark=10_000, **EVENTS)
    # There is no watermark yet: it reads as 0. After the batch it is 10 s.
    assert run.run(events(20)) == [{"id": "a", "what": "(20, 20)"}, {"id": "a-expired", "what": "0"}]
    assert run.run(events(4), ["a"]) == []  # late
    assert run.run(events(2, 10, 11, 13, 15), ["a"]) == [
        {"id": "a", "what": "(15, 11)"},
        {"id": "a-expired", "what": "10000"},
    ]
    assert run.state("a", "newest") is None


@pytest.mark.parametrize("time_mode", ["none", "processingTime"])
def test_rows_are_late_in_event_time_only(time_mode: str, form: str) -> None:
    class Earliest(Newest):
        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            yield self.emit(id=key[0], what=str(min(int(at.timestamp()) for at in self.values(rows, "at"))))

    run = World("nothing", Earliest(form), OUT, time_mode=time_mode, watermark=10_000, **EVENTS)
    assert [run.run(events(*seconds)) for seconds in ((20,), (4,), (2, 11))] == [
        [{"id": "a", "what": what}] for what in ("20", "4", "2")
    ]


def test_a_watermark_that_advances_without_rows_of_a_key_fires_its_timers(world: MakeWorld, form: str) -> None:
    class EndOfSession(Newest):
        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            newest = max(int(at.timestamp() * 1_000) for at in self.values(rows, "at"))
            self.newest.update((str(newest),))
            self.handle.registerTimer(newest + 5_000)
            yield self.emit(id=key[0], what=f"at {newest}")

    run = world(EndOfSession(form), OUT, time_mode="eventTime", watermark=2_000, **EVENTS)
    assert run.run(events(10, key="k1")) == [{"id": "k1", "what": "at 10000"}]
    assert run.run(events(12, key="k2"), ["k1"]) == [{"id": "k2", "what": "at 12000"}]
    assert run.run(events(20, key="k3"), ["k1", "k2"]) == [
        {"id": "k1-expired", "what": "15000"},
        {"id": "k2-expired", "what": "17000"},
        {"id": "k3", "what": "at 20000"},
    ]
    assert run.state("k1", "newest") is None
    assert run.state("k3", "newest") == {"at": "20000"}


class Clocks(Processor):
    """Emits the clocks."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        list(rows)
        clocks = timerValues.getCurrentProcessingTimeInMs(), timerValues.getCurrentWatermarkInMs()
        yield self.emit(id=key[0], what=str(clocks))


@pytest.mark.parametrize(
    ("time_mode", "expected"),
    [
        ("None", ["(-1, -1)"] * 2),
        ("ProcessingTime", ["(7000, 0)", "(8000, 10000)"]),
        ("EventTime", ["(7000, 0)", "(8000, 10000)"]),
    ],
)
def test_clocks_show_what_the_time_mode_has(time_mode: str, expected: list[str], form: str) -> None:
    run = World("nothing", Clocks(form), OUT, time_mode=time_mode, watermark=10_000, **EVENTS)
    batches = [InputBatch(events(20), 7_000), InputBatch(events(21))]
    assert [row["what"] for row in run.tester.run(batches)] == expected


class Expiring(Processor):
    """Counts in states with and without a time to live; `temperature` says whether it also updates them."""

    def init(self, handle: Any) -> None:
        self.plain = handle.getValueState("plain", "n int")
        self.value = handle.getValueState("value", "n int", 10_000)
        self.list = handle.getListState("list", "n int", ttlDurationMs=10_000)
        self.map = handle.getMapState("map", "k string", "n int", 10_000)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        updates = sum(self.values(rows, "temperature"))
        now = timerValues.getCurrentProcessingTimeInMs()
        found = [
            self.value.get() is not None and self.value.exists(),
            [n for (n,) in self.list.get()],
            self.list.exists(),
            [k for (k,) in sorted(self.map.keys())],
            self.map.exists(),
            self.map.containsKey(("first",)),
            self.map.getValue(("first",)),
        ]
        if updates:
            self.plain.update((1,))
            self.value.update((now,))
            self.list.appendValue((now,))
            self.map.updateValue((str(now),), (now,))
            if not now:
                self.map.updateValue(("first",), (now,))
        yield self.emit(id=key[0], what=str(found))


def test_values_expire_when_their_time_to_live_is_over(world: MakeWorld, form: str) -> None:
    run = world(Expiring(form), OUT, time_mode="ProcessingTime")

    def at(now: int, updates: int = 0) -> str:
        (row,) = run.run(readings(("0", updates)), KEYS, timestamp_ms=now)
        return str(row["what"])

    assert at(0, 1) == "[False, [], False, [], False, False, None]"
    assert at(6_000, 1) == "[True, [0], True, ['0', 'first'], True, True, Row(n=0)]"
    assert at(9_999) == "[True, [0, 6000], True, ['0', '6000', 'first'], True, True, Row(n=0)]"
    # What was written at 0 is gone at 10,000; the value was written again at 6,000.
    assert at(10_000) == "[True, [6000], True, ['6000'], True, False, None]"
    assert at(12_000, 1) == "[True, [6000], True, ['6000'], True, False, None]"
    assert at(16_000) == "[True, [12000], True, ['12000'], True, False, None]"
    assert at(21_999) == "[True, [12000], True, ['12000'], True, False, None]"
    assert at(22_000) == "[False, [], False, [], False, False, None]"


def test_what_has_expired_takes_no_room_although_its_key_never_comes_back(world: MakeWorld, form: str) -> None:
    run = world(Expiring(form), OUT, time_mode="ProcessingTime")
    run.run(readings(("0", 1)), timestamp_ms=0)
    run.run(readings(("1", 1)), KEYS, timestamp_ms=1_000)
    run.run((), KEYS, timestamp_ms=10_500)
    assert run.tester.tester.state("0") == {"plain": {"n": 1}}
    assert sorted(run.tester.tester.state("1")) == ["list", "map", "plain", "value"]
    run.run((), KEYS, timestamp_ms=11_000)
    assert run.tester.tester.state("1") == {"plain": {"n": 1}}


class Renewing(Processor):
    """Writes one entry of a map per batch, and emits which are left."""

    def init(self, handle: Any) -> None:
        self.map = handle.getMapState("map", "n int", "n int", 10_000)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        for n in self.values(rows, "temperature"):
            if n:
                self.map.updateValue((n,), (n,))
        yield self.emit(id=key[0], what=f"{self.map.exists()} {[n for (n,) in self.map.values()]}")


def test_an_update_renews_an_entry_of_a_map_alone(world: MakeWorld, form: str) -> None:
    run = world(Renewing(form), OUT, time_mode="ProcessingTime")
    found = [run.run(readings(("0", n)), ["0"], timestamp_ms=at) for n, at in ((1, 0), (2, 1_000), (1, 9_000))]
    assert [rows[0]["what"] for rows in found] == ["True [1]", "True [1, 2]", "True [2, 1]"]
    assert run.run(readings(("0", 0)), ["0"], timestamp_ms=11_500) == [{"id": "0", "what": "True [1]"}]
    assert run.run(readings(("0", 0)), ["0"], timestamp_ms=19_000) == [{"id": "0", "what": "False []"}]
    assert run.tester.tester.state("0") is None


class Ageing(Processor):
    """Does what the rows say with a list, a map and a value of nested types, all with a time to live of ten seconds."""

    def init(self, handle: Any) -> None:
        self.list = handle.getListState("list", "n int", 10_000)
        self.map = handle.getMapState("map", "k string", "tags array<int>", 10_000)
        self.value = handle.getValueState("value", "s struct<x: int, m: map<string,int>>", 10_000)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        for n in self.values(rows, "temperature"):
            [self.look, self.append, self.put, self.clear][n]()
        nested = self.value.get()
        held = [n for (n,) in self.list.get()], [(k, t) for (k,), (t,) in self.map.iterator()]
        yield self.emit(id=key[0], what=str((*held, nested and (nested[0].x, nested[0].m))))

    def look(self) -> None:
        """Change nothing."""

    def append(self) -> None:
        self.list.appendList([(1,), (1,)])
        self.map.updateValue(("appended",), ([1],))

    def put(self) -> None:
        self.list.put([(2,)])
        self.map.updateValue(("put",), ([2, 2],))
        self.value.update(((2, {"m": 2}),))

    def clear(self) -> None:
        self.list.clear()
        self.map.clear()
        self.value.clear()


def test_appended_entries_expire_apart_replaced_ones_together_and_cleared_ones_at_once(
    world: MakeWorld, form: str
) -> None:
    run = world(Ageing(form), OUT, time_mode="ProcessingTime")

    def at(now: int, what: int) -> str:
        (row,) = run.run(readings(("0", what)), ["0"], timestamp_ms=now)
        return str(row["what"])

    assert at(0, 1) == "([1, 1], [('appended', [1])], None)"
    assert at(4_000, 1) == "([1, 1, 1, 1], [('appended', [1])], None)"
    assert at(10_000, 0) == "([1, 1], [('appended', [1])], None)"  # the map's entry was renewed at 4,000
    assert at(12_000, 2) == "([2], [('appended', [1]), ('put', [2, 2])], (2, {'m': 2}))"
    assert at(14_000, 0) == "([2], [('put', [2, 2])], (2, {'m': 2}))"
    assert at(15_000, 3) == "([], [], None)"
    assert at(16_000, 1) == "([1, 1], [('appended', [1])], None)"
    assert at(22_000, 0) == "([1, 1], [('appended', [1])], None)"  # what was cleared expires no more
    assert at(26_000, 0) == "([], [], None)"
    assert run.tester.tester.state("0") is None


def test_a_time_to_live_of_zero_is_none(form: str) -> None:
    class Forever(Processor):
        def init(self, handle: Any) -> None:
            self.value = handle.getValueState("value", "n int", 0)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            count = (self.value.get() or (0,))[0] + len(self.values(rows, "temperature"))
            self.value.update((count,))
            yield self.emit(id=key[0], what=str(count))

    run = World("nothing", Forever(form), OUT)
    run.run(readings(("0", 1)))
    assert run.run(readings(("0", 1)), timestamp_ms=10**12) == [{"id": "0", "what": "2"}]


@pytest.mark.parametrize("call", ["registerTimer", "deleteTimer", "listTimers"])
def test_there_are_no_timers_without_a_time_mode(call: str) -> None:
    class Timers(Processor):
        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            getattr(self.handle, call)(*() if call == "listTimers" else (12_345,))
            yield self.emit(id=key[0], what="")

    with pytest.raises(OperatorFailed, match="there are no timers with time_mode"):
        World("nothing", Timers(), OUT).run(readings(("0", 1)))
