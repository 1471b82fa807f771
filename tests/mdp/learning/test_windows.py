"""Windows of a log: against a dictionary filled by hand."""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdp.errors import DuplicatedTime, GapInLog, InvalidLog, InvalidRecipe
from mdp.learning.logs import Log
from mdp.learning.recipe import Recipe
from mdp.learning.windows import Windows, split_into_windows

MIDNIGHT = datetime(2015, 3, 1)
WIDTH = 600.0
MINUTES = st.integers(0, 100)
records = st.lists(st.tuples(MINUTES, st.integers(0, 50)), min_size=1, max_size=60)


def log_of(*minutes_and_loads: tuple[float, float]) -> Log:
    times = [MIDNIGHT + timedelta(minutes=minutes) for minutes, _ in minutes_and_loads]
    return Log(times, [load for _, load in minutes_and_loads])


def recipe(**choices: Any) -> Recipe:
    return Recipe(
        8, 16, **{"window_seconds": WIDTH, "combine": "mean", "gaps": "split", "duplicates": "sum", **choices}
    )


def shown(windows: Windows) -> list[tuple[str, float, int]]:
    starts = [str(start)[11:16] for start in windows.starts]
    return list(zip(starts, windows.values.tolist(), windows.runs.tolist(), strict=True))


@given(records, st.sampled_from(["mean", "max", "last"]), st.sampled_from(["sum", "last"]))
def test_windows_are_those_of_a_dictionary(rows: list[tuple[int, int]], combine: str, duplicates: str) -> None:
    found = split_into_windows(log_of(*rows), recipe(combine=combine, duplicates=duplicates))
    moments: dict[int, float] = {}
    for minute, load in rows:
        moments[minute] = load + (moments.get(minute, 0) if duplicates == "sum" else 0)
    expected: defaultdict[int, list[float]] = defaultdict(list)
    for minute in sorted(moments):
        expected[minute // 10].append(moments[minute])
    how: Any = {"mean": np.mean, "max": max, "last": lambda loads: loads[-1]}[combine]
    base = int(np.datetime64(MIDNIGHT, "s").astype(np.int64)) // 600
    assert [number - base for number in found.numbers.tolist()] == sorted(expected)
    assert found.values == pytest.approx([how(expected[number]) for number in sorted(expected)])
    breaks = [b - a > 1 for a, b in zip(sorted(expected), sorted(expected)[1:], strict=False)]
    assert found.runs.tolist() == [0, *np.cumsum(breaks).tolist()]


@given(records)
def test_holding_fills_every_gap_with_the_value_before_it(rows: list[tuple[int, int]]) -> None:
    split = split_into_windows(log_of(*rows), recipe(gaps="split"))
    held = split_into_windows(log_of(*rows), recipe(gaps="hold"))
    known = dict(zip(split.numbers.tolist(), split.values.tolist(), strict=True))
    value = np.nan
    for number, filled in zip(held.numbers.tolist(), held.values.tolist(), strict=True):
        value = known.get(number, value)
        assert filled == value
    assert len(held) == held.numbers[-1] - held.numbers[0] + 1
    assert not held.runs.any()


def test_a_gap_is_named() -> None:
    with pytest.raises(GapInLog, match=r"between 2015-03-01T00:20:00 and 2015-03-01T00:40:00") as refused:
        split_into_windows(log_of((0, 1), (10, 1), (40, 1), (70, 1)), recipe(gaps="error"))
    assert refused.value.windows == 4


def test_a_duplicate_is_named() -> None:
    with pytest.raises(DuplicatedTime, match="2015-03-01T00:05:00") as refused:
        split_into_windows(log_of((0, 1), (5, 2), (5, 3), (5, 4), (7, 1), (7, 2)), recipe(duplicates="error"))
    assert refused.value.moments == 2


def test_the_later_record_of_a_moment_wins_if_asked() -> None:
    rows = [(0, 7), (5, 2), (0, 1), (5, 3)]
    assert shown(split_into_windows(log_of(*rows), recipe(duplicates="last", combine="sum"))) == [("00:00", 4.0, 0)]


def test_sums_of_windows_that_the_log_covers_in_part_are_left_out() -> None:
    every_two_minutes = [(minute, 1.0) for minute in range(7, 45, 2)]
    assert shown(split_into_windows(log_of(*every_two_minutes), recipe(combine="sum"))) == [
        ("00:10", 5.0, 0),
        ("00:20", 5.0, 0),
        ("00:30", 5.0, 0),
    ]
    assert [start for start, _, _ in shown(split_into_windows(log_of(*every_two_minutes), recipe(combine="mean")))] == [
        "00:00",
        "00:10",
        "00:20",
        "00:30",
        "00:40",
    ]


def test_sums_next_to_a_gap_are_left_out_too() -> None:
    rows = [(minute, 1.0) for minute in range(60) if not 24 <= minute < 43]
    assert shown(split_into_windows(log_of(*rows), recipe(combine="sum"))) == [
        ("00:00", 10.0, 0),
        ("00:10", 10.0, 0),
        ("00:50", 10.0, 1),
    ]
    held = shown(split_into_windows(log_of(*rows), recipe(combine="sum", gaps="hold")))
    assert [value for _, value, _ in held] == [10.0] * 6


def test_a_log_of_one_record_a_window_is_whole() -> None:
    rows = [(minute, float(minute)) for minute in range(7, 67, 10)]
    assert [value for _, value, _ in shown(split_into_windows(log_of(*rows), recipe(combine="sum")))] == [
        7,
        17,
        27,
        37,
        47,
        57,
    ]


def test_a_log_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(InvalidLog, match="no whole window of 600 s"):
        split_into_windows(log_of((3, 1), (4, 1), (5, 1)), recipe(combine="sum"))


def test_times_before_1970_have_windows_too() -> None:
    log = Log([-601, -1, 0], [1, 2, 3])
    assert split_into_windows(log, recipe(combine="last")).numbers.tolist() == [-2, -1, 0]


@pytest.mark.parametrize(
    ("times", "loads", "says"),
    [
        ([], [], "empty"),
        ([0, 1], [1], "2 times and 1 values"),
        ([0, 300], [1, -2], "record 2, of 1970-01-01T00:05:00, has the value -2"),
        ([300, 0], [float("nan"), 1], "record 1, of 1970-01-01T00:05:00, has the value nan"),
        ([0], [float("inf")], "inf"),
        (["2015-03-01", "NaT"], [1, 1], "record 2 has no time"),
        (["yesterday"], [1], "cannot be read"),
    ],
)
def test_what_is_no_log_is_refused(times: Any, loads: Any, says: str) -> None:
    with pytest.raises(InvalidLog, match=says):
        Log(times, loads)


@pytest.mark.parametrize("nodes", [0, 1.5, -1])
def test_node_counts_are_whole_and_at_least_one(nodes: float) -> None:
    with pytest.raises(InvalidLog, match="whole number of nodes"):
        Log([0], [nodes], "nodes")


def test_a_log_holds_loads_or_nodes() -> None:
    with pytest.raises(InvalidLog, match="'tweets'"):
        Log([0], [1], "tweets")


def test_a_log_is_in_order_of_time_and_can_be_split() -> None:
    log = Log(["2015-03-02", "2015-03-01", "2015-03-03"], [2, 1, 3])
    assert log.values.tolist() == [1, 2, 3]
    before, after = log.split("2015-03-02")
    assert (before.values.tolist(), after.values.tolist()) == ([1], [2, 3])
    with pytest.raises(InvalidLog, match="Split between 2015-03-01"):
        log.split("2015-03-04")


@pytest.mark.parametrize(
    "choices",
    [
        {"gaps": "mend"},
        {"combine": "median"},
        {"window_seconds": 0.0001},
        {"window_seconds": float("nan")},
        {"quantiles": (0.9, 0.1)},
        {"quantiles": (0.1,)},
        {"hysteresis": -1},
        {"low": 16, "high": 8},
    ],
)
def test_a_recipe_that_cannot_be_followed_is_refused(choices: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecipe):
        Recipe(**choices)


def test_loads_need_a_range_and_node_counts_are_not_added() -> None:
    with pytest.raises(InvalidRecipe, match="such as 8 to 16"):
        Recipe().for_loads()
    for choices in ({"combine": "sum"}, {"duplicates": "sum"}):
        with pytest.raises(InvalidRecipe, match="not combined"):
            Recipe(**choices).for_nodes()  # type: ignore[arg-type]
