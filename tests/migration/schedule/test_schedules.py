"""A schedule by its name."""

from typing import Any

import pytest

from migration import Move, UnknownOption, UnknownStrategy
from migration.schedule import SCHEDULES, schedule_by_count, schedule_by_size, schedule_mini_migrations, schedule_moves

MOVES = [Move(0, "a", "b", 1.0), Move(1, "a", "b", 2.0), Move(2, "a", "c", 4.0)]


def test_the_name_chooses_the_schedule() -> None:
    assert list(schedule_moves(MOVES)) == list(schedule_by_count(MOVES))
    assert list(schedule_moves(MOVES, "size")) == list(schedule_by_size(MOVES))
    assert list(schedule_moves(MOVES, "mini", tasks_per_node=2)) == list(schedule_mini_migrations(MOVES, 2))


@pytest.mark.parametrize("name", ["fast", "", None, ["count"]])
def test_an_unknown_schedule_is_refused_with_the_known_ones(name: Any) -> None:
    with pytest.raises(UnknownStrategy) as refused:
        schedule_moves(MOVES, name)
    assert refused.value.known == tuple(SCHEDULES)
    assert "unknown schedule" in str(refused.value)


@pytest.mark.parametrize("name", ["count", "size"])
def test_a_bound_that_a_schedule_would_ignore_is_refused(name: str) -> None:
    with pytest.raises(UnknownOption, match="tasks_per_node"):
        schedule_moves(MOVES, name, tasks_per_node=2)
