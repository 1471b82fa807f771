"""Schedules by name, for callers that get the name from a command line or a request."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from migration.model.moves import Move
from migration.registry import find_variant
from migration.schedule.by_count import schedule_by_count
from migration.schedule.by_size import schedule_by_size
from migration.schedule.mini_migrations import schedule_mini_migrations
from migration.schedule.transfers import TransferPhase

SCHEDULES: Mapping[str, Callable[..., Iterator[TransferPhase]]] = {
    "count": schedule_by_count,
    "size": schedule_by_size,
    "mini": schedule_mini_migrations,
}


def schedule_moves(moves: Iterable[Move], schedule: str = "count", **bounds: Any) -> Iterator[TransferPhase]:
    """Yield the phases of a plan's moves. `bounds` go to the schedule ("mini": `tasks_per_node`, `size_per_node`)."""
    return find_variant("schedule", SCHEDULES, schedule, bounds)(moves, **bounds)
