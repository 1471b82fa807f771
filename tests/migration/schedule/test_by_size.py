"""Phases by size: states in parts, in the shortest time there can be."""

from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from migration.model import Move
from migration.schedule import Transfer, TransferPhase, schedule_by_size
from migration.schedule.transfers import group_by_pair
from tests.migration.schedule.move_lists import any_sizes, brisk, exact_sizes, move_lists, size_per_direction

byte_counts = st.integers(0, 2**46).map(float)


def lower_bound(moves: list[Move]) -> Fraction:
    return max(size_per_direction(map(Transfer.whole, moves)).values(), default=Fraction(0))


def total_duration(phases: list[TransferPhase]) -> Fraction:
    return sum((Fraction(phase.duration) for phase in phases), Fraction(0))


@brisk
@given(move_lists())
def test_no_node_sends_to_two_nodes_or_receives_from_two_in_a_phase(moves: list[Move]) -> None:
    for phase in schedule_by_size(moves):
        pairs = group_by_pair(transfer.move for transfer in phase.transfers)
        for side in zip(*pairs, strict=True):
            assert len(set(side)) == len(side)


@brisk
@given(st.one_of(move_lists(exact_sizes), move_lists(byte_counts)))
def test_the_durations_add_up_to_the_busiest_direction_of_the_busiest_node(moves: list[Move]) -> None:
    assert total_duration(list(schedule_by_size(moves))) == lower_bound(moves)


@brisk
@given(move_lists(any_sizes))
def test_sizes_too_fine_for_exact_sums_miss_the_bound_by_rounding_only(moves: list[Move]) -> None:
    rounding = len(moves) * sum(Fraction(move.size) for move in moves) / 2**51
    assert abs(total_duration(list(schedule_by_size(moves))) - lower_bound(moves)) <= rounding


@brisk
@given(move_lists())
def test_there_are_no_more_phases_with_a_duration_than_pairs_and_padding(moves: list[Move]) -> None:
    pairs = group_by_pair(moves)
    order = max((len({pair[side] for pair in pairs}) for side in (0, 1) if pairs), default=0)
    lasting = [phase for phase in schedule_by_size(moves) if phase.duration > 0]
    assert len(lasting) <= max(len(pairs) + 2 * order - 1, 0)


@pytest.mark.parametrize("largest", [5e-324, 1e-310, 1.0, 1e308])
def test_the_smallest_float_above_zero_is_a_size_like_any_other(largest: float) -> None:
    moves = [Move(0, "a", "b", 5e-324), Move(1, "b", "a", largest), Move(2, "a", "c", 5e-324)]
    made = list(schedule_by_size(moves))
    assert sorted(move for phase in made for move in phase.moves) == moves
    assert sum(phase.duration for phase in made) == max(largest, 1e-323)


@brisk
@given(move_lists(st.just(0.0), min_size=1))
def test_empty_states_travel_too_and_take_no_time(moves: list[Move]) -> None:
    made = list(schedule_by_size(moves))
    assert sorted(move for phase in made for move in phase.moves) == sorted(moves)
    assert total_duration(made) == 0


@brisk
@given(move_lists())
def test_only_empty_states_of_pairs_without_others_get_phases_of_their_own(moves: list[Move]) -> None:
    pairs = group_by_pair(moves)
    for phase in schedule_by_size(moves):
        if phase.duration == 0:
            assert not any(waiting.size for move in phase.moves for waiting in pairs[move.source, move.target])


def test_the_busiest_node_is_never_idle() -> None:
    ab, ac, dc = Move(0, "a", "b", 2.0), Move(1, "a", "c", 2.0), Move(2, "d", "c", 3.0)
    made = list(schedule_by_size([ab, ac, dc]))
    assert sum(phase.duration for phase in made) == 5  # what c receives
    assert all("c" in {transfer.move.target for transfer in phase.transfers} for phase in made)


def test_a_pair_may_finish_one_state_and_start_the_next_in_one_phase() -> None:
    moves = [Move(0, "a", "b", 2.0), Move(1, "a", "b", 4.0), Move(2, "c", "b", 3.0), Move(3, "a", "d", 3.0)]
    shared = [phase for phase in schedule_by_size(moves) if {0, 1} <= {part.move.task for part in phase.transfers}]
    assert shared
