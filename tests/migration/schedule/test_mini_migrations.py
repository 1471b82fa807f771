"""Mini-migrations: bounds are kept, and nothing waits that need not."""

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from migration import InvalidSchedule
from migration.model import Move
from migration.schedule import Transfer, TransferPhase, schedule_mini_migrations
from tests.migration.schedule.move_lists import brisk, exact_sizes, move_lists, size_per_direction, tasks_per_direction

task_bounds = st.integers(1, 6)
size_bounds = st.integers(1, 160).map(lambda eighths: eighths / 8)


def within_bounds(moves: Iterable[Move], most_tasks: float, most_size: float) -> bool:
    """Whether no node sends or receives too much; a direction with one move only is always within the size."""
    moves = list(moves)
    tasks = tasks_per_direction(moves)
    sizes = size_per_direction(map(Transfer.whole, moves))
    return all(tasks[way] <= most_tasks and (sizes[way] <= most_size or tasks[way] == 1) for way in tasks)


@brisk
@given(move_lists(exact_sizes), task_bounds, size_bounds)
def test_no_node_sends_or_receives_more_than_the_bounds(moves: list[Move], tasks: int, size: float) -> None:
    for phase in schedule_mini_migrations(moves, tasks):
        assert within_bounds(phase.moves, tasks, math.inf)
    for phase in schedule_mini_migrations(moves, size_per_node=size):
        assert within_bounds(phase.moves, math.inf, size)
    for phase in schedule_mini_migrations(moves, tasks, size):
        assert within_bounds(phase.moves, tasks, size)


@brisk
@given(move_lists(), size_bounds)
def test_sizes_too_fine_for_exact_sums_exceed_the_bound_by_rounding_only(moves: list[Move], size: float) -> None:
    for phase in schedule_mini_migrations(moves, size_per_node=size):
        assert within_bounds(phase.moves, math.inf, size * (1 + 1e-12))


@brisk
@given(move_lists(), task_bounds)
def test_with_a_bound_on_tasks_alone_no_fewer_mini_migrations_would_do(moves: list[Move], tasks: int) -> None:
    busiest = max(tasks_per_direction(moves).values(), default=0)
    assert len(list(schedule_mini_migrations(moves, tasks))) == math.ceil(Fraction(busiest, tasks))


def test_moves_that_first_fit_would_spread_over_three_mini_migrations_make_two() -> None:
    # One after the other, a -> x and c -> z go first, c -> y second, and a -> y finds a busy first and y busy second.
    moves = [Move(task, *pair, 1.0) for task, pair in enumerate((("a", "x"), ("c", "z"), ("c", "y"), ("a", "y")))]
    assert len(list(schedule_mini_migrations(moves, 1, 1.0))) == 3
    assert len(list(schedule_mini_migrations(moves, 1))) == 2


@brisk
@given(move_lists(exact_sizes), st.one_of(st.none(), task_bounds), size_bounds)
def test_no_move_would_fit_into_an_earlier_mini_migration(moves: list[Move], tasks: int | None, size: float) -> None:
    made = list(schedule_mini_migrations(moves, tasks, size))
    for earlier, later in combinations(made, 2):
        for move in later.moves:
            assert not within_bounds([*earlier.moves, move], tasks or math.inf, size)


@brisk
@given(move_lists(exact_sizes, min_size=1))
def test_without_bounds_everything_moves_at_once(moves: list[Move]) -> None:
    (phase,) = schedule_mini_migrations(moves)
    assert sorted(phase.moves) == sorted(moves)


def test_a_state_above_the_bound_travels_with_nothing_else_at_either_end() -> None:
    huge, empty, other = Move(0, "a", "b", 9.0), Move(1, "a", "c", 0.0), Move(2, "d", "e", 1.0)
    assert moves_of(schedule_mini_migrations([other, empty, huge], size_per_node=2)) == [[huge, other], [empty]]


def test_larger_states_go_first_and_smaller_ones_fill_the_gaps() -> None:
    moves = [Move(task, "a", "b", size) for task, size in enumerate((1.0, 2.0, 4.0, 5.0))]
    sizes = [[move.size for move in group] for group in moves_of(schedule_mini_migrations(moves, size_per_node=6))]
    assert sizes == [[5.0, 1.0], [4.0, 2.0]]


def moves_of(phases: Iterable[TransferPhase]) -> list[list[Move]]:
    return [list(phase.moves) for phase in phases]


@pytest.mark.parametrize(
    "bounds",
    [
        {"tasks_per_node": 0},
        {"tasks_per_node": -1},
        {"tasks_per_node": 1.5},
        {"tasks_per_node": "two"},
        {"size_per_node": 0},
        {"size_per_node": -1.0},
        {"size_per_node": math.inf},
        {"size_per_node": math.nan},
        {"size_per_node": "large"},
        {"size_per_node": 10**400},
        {"tasks_per_node": 2, "size_per_node": 0},
    ],
)
def test_a_bound_that_nothing_could_satisfy_is_refused_before_the_first_phase(bounds: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchedule, match=r"or None for no bound\.$"):
        schedule_mini_migrations([], **bounds)
