"""What every schedule promises, whatever it is."""

import inspect
import math
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from migration import Assignment, InvalidSchedule, Move, ScatteredAssignment, Workload, apply_moves, plan
from migration.schedule import SCHEDULES, Transfer, schedule_moves
from tests.migration.schedule.move_lists import NODES, brisk, exact_sizes, move_lists, size_per_direction

BOUNDS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in SCHEDULES),
    ("mini", {"tasks_per_node": 2}),
    ("mini", {"size_per_node": 3.5}),
    ("mini", {"tasks_per_node": 3, "size_per_node": 2.0}),
]
schedules = pytest.mark.parametrize(("schedule", "bounds"), BOUNDS)


@schedules
@brisk
@given(moves=move_lists())
def test_every_move_travels_exactly_once_and_its_parts_in_order(
    schedule: str, bounds: dict[str, Any], moves: list[Move]
) -> None:
    parts: dict[Move, list[Transfer]] = defaultdict(list)
    for phase in schedule_moves(moves, schedule, **bounds):
        for transfer in phase.transfers:
            parts[transfer.move].append(transfer)
    assert sorted(parts) == sorted(moves)
    for move, travelled in parts.items():
        assert travelled[0].start == 0
        assert all(before.stop == after.start for before, after in pairwise(travelled))
        assert travelled[-1].stop == move.size


@schedules
@brisk
@given(moves=move_lists(min_size=1))
def test_the_moves_done_after_each_phase_lead_to_the_target(
    schedule: str, bounds: dict[str, Any], moves: list[Move]
) -> None:
    by_task = sorted(moves)
    current = ScatteredAssignment.from_owners([move.source for move in by_task], NODES)
    done = [move for phase in schedule_moves(moves, schedule, **bounds) for move in phase.moves]
    assert sorted(done) == by_task
    assert apply_moves(current, done, NODES).owners == tuple(move.target for move in by_task)


@schedules
def test_the_phases_of_a_plan_lead_to_its_target(schedule: str, bounds: dict[str, Any]) -> None:
    workload = Workload(range(64))
    made = plan(Assignment.even(64, 8), 10, workload)
    done = [move for phase in schedule_moves(made.moves, schedule, **bounds) for move in phase.moves]
    assert apply_moves(made.current, done, made.target.nodes).owners == made.target.owners


@schedules
@brisk
@given(moves=move_lists(exact_sizes))
def test_a_phase_lasts_as_long_as_its_busiest_node(schedule: str, bounds: dict[str, Any], moves: list[Move]) -> None:
    for phase in schedule_moves(moves, schedule, **bounds):
        assert phase.duration == max(size_per_direction(phase.transfers).values())


@schedules
def test_the_same_moves_make_the_same_phases(schedule: str, bounds: dict[str, Any]) -> None:
    moves = plan(Assignment.even(64, 8), 10, Workload(range(64)), strategy="even").moves
    assert list(schedule_moves(moves, schedule, **bounds)) == list(schedule_moves(iter(moves), schedule, **bounds))


def test_the_phases_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from migration import Move; from migration.schedule import SCHEDULES, schedule_moves; "
        "moves = [Move(i, f'n{i * 7 % 11}', f'm{i * 5 % 13}', i % 17 / 4) for i in range(300)]; "
        "print([list(schedule_moves(moves, name)) for name in SCHEDULES]); "
        "print(list(schedule_moves(moves, 'mini', size_per_node=4)))"
    )
    printed = {
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


@schedules
def test_no_moves_make_no_phases(schedule: str, bounds: dict[str, Any]) -> None:
    assert list(schedule_moves([], schedule, **bounds)) == []


@schedules
def test_phases_are_made_when_they_are_asked_for(schedule: str, bounds: dict[str, Any]) -> None:
    assert inspect.isgenerator(schedule_moves([Move(0, "a", "b", 1.0)], schedule, **bounds))


@schedules
@pytest.mark.parametrize(
    ("moves", "complaint"),
    [
        ([Move(3, "a", "b", 1.0), Move(3, "b", "c", 1.0)], "task 3 moves twice"),
        ([Move(0, "a", "b", -1.0)], "not negative"),
        ([Move(0, "a", "b", math.nan)], "not negative"),
        ([Move(0, "a", "b", math.inf)], "not finite"),
        ([Move(0, "a", "b", 1e308), Move(1, "c", "d", 1e308)], "not finite"),
    ],
)
def test_moves_that_no_plan_could_make_are_refused_at_once(
    schedule: str, bounds: dict[str, Any], moves: list[Move], complaint: str
) -> None:
    with pytest.raises(InvalidSchedule, match=complaint):
        schedule_moves(moves, schedule, **bounds)
