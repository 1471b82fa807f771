"""A transfer is a part of its move, and a phase a set of parts."""

import pytest

from migration import InvalidSchedule
from migration.model import Move
from migration.schedule import Transfer, TransferPhase

MOVE = Move(5, "a", "b", 8.0)


@pytest.mark.parametrize(("start", "stop"), [(-1, 4), (4, 9), (6, 5), (4, 4), (0, float("nan"))])
def test_a_part_that_is_empty_or_leaves_its_move_is_refused(start: float, stop: float) -> None:
    with pytest.raises(InvalidSchedule, match="Stay within its size"):
        Transfer(MOVE, start, stop)


def test_an_empty_state_has_one_part_which_is_its_last() -> None:
    empty = Transfer.whole(Move(5, "a", "b", 0.0))
    assert empty.size == 0
    assert empty.is_last


def test_a_phase_without_transfers_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="no transfers"):
        TransferPhase(())


def test_a_phase_with_two_parts_of_one_move_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="two transfers of one task"):
        TransferPhase((Transfer(MOVE, 0, 3), Transfer(MOVE, 3, 8)))


def test_a_move_is_done_in_the_phase_of_its_last_part_only() -> None:
    assert TransferPhase((Transfer(MOVE, 0, 3),)).moves == ()
    assert TransferPhase((Transfer(MOVE, 3, 8),)).moves == (MOVE,)


def test_sending_and_receiving_go_on_side_by_side() -> None:
    phase = TransferPhase(
        (Transfer.whole(MOVE), Transfer.whole(Move(6, "b", "c", 5.0)), Transfer.whole(Move(7, "a", "c", 1.0)))
    )
    assert phase.duration == 9  # what a sends; b sends and receives at the same time
