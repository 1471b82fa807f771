"""Timers are compared with a plain list."""

import math
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from elastic.operators.keys import to_canonical
from elastic.operators.timers import KINDS, Timer, Timers

keys = st.sampled_from(["a", "b", 1, 2, None, ("a", 1), ("a", None), 1.5, to_canonical(math.nan)])
names = st.sampled_from(["", "x"])
kinds = st.sampled_from(KINDS)
sets = st.builds(Timer, st.integers(0, 9), kinds, names, keys)
changes = st.lists(sets | st.tuples(kinds, keys, names) | st.integers(0, 9), max_size=30)


@given(changes, st.booleans())
def test_timers_are_those_set_and_neither_deleted_nor_fired(operations: list[Any], store: bool) -> None:
    timers, expected = Timers(), {}
    for change in operations:
        if store:
            timers = Timers.from_columns(timers.to_columns())
        if isinstance(change, Timer):
            timers.set(change)
            expected[change.kind, change.key, change.name] = change
        elif isinstance(change, tuple):
            timers.delete(*change)
            expected.pop(change, None)
        else:
            now = {"event": change, "processing": None}
            due = {timer for timer in expected.values() if timer.kind == "event" and timer.at_ms <= change}
            assert timers.is_due(now) == bool(due)
            taken = timers.take_due(now)
            assert set(taken) == due
            assert [timer.at_ms for timer in taken] == sorted(timer.at_ms for timer in taken)
            expected = {place: timer for place, timer in expected.items() if timer not in due}
        assert len(timers) == len(expected)


@given(st.lists(sets, max_size=12), st.randoms())
def test_the_order_in_which_timers_were_set_does_not_matter(wanted: list[Timer], random: Any) -> None:
    wanted = list({(timer.kind, timer.key, timer.name): timer for timer in wanted}.values())
    shuffled = random.sample(wanted, len(wanted))
    taken = []
    for sort_key in (wanted, shuffled):
        timers = Timers()
        for timer in sort_key:
            timers.set(timer)
        taken.append(timers.take_due(dict.fromkeys(KINDS, 9)))
    assert taken[0] == taken[1]
    assert len(taken[0]) == len(wanted)


def test_moving_a_timer_a_thousand_times_does_not_leak_memory() -> None:
    timers = Timers()
    for at_ms in range(1_000):
        timers.set(Timer(at_ms, "event", "", "key"))
    assert len(timers) == 1
    assert len(timers._clocks["event"]._heap) < 50
    assert [timer.at_ms for timer in timers.take_due({"event": 5_000})] == [999]


def test_the_earliest_timer_of_a_kind_is_known_also_after_deletions() -> None:
    timers = Timers()
    assert timers.next_ms("processing") is None
    for at_ms in (30, 10, 20):
        timers.set(Timer(at_ms, "processing", name=str(at_ms)))
    timers.set(Timer(5, "event"))
    assert timers.next_ms("processing") == 10
    timers.delete("processing", None, "10")
    assert timers.next_ms("processing") == 20
    timers.take_due({"processing": 25})
    assert timers.next_ms("processing") == 30
