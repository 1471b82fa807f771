"""The one way in by name, for callers that read the schedule from a command line or a request."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from migration.model.moves import Move
from migration.registry import variant
from migration.schedule.by_count import phases_by_count
from migration.schedule.by_size import phases_by_size
from migration.schedule.mini_migrations import mini_migrations
from migration.schedule.phase import Phase

SCHEDULES: Mapping[str, Callable[..., Iterator[Phase]]] = {
    "count": phases_by_count,
    "size": phases_by_size,
    "mini": mini_migrations,
}


def phases(moves: Iterable[Move], schedule: str = "count", **bounds: Any) -> Iterator[Phase]:
    """The phases of a plan's moves; `bounds` go to the schedule: `tasks_per_node` and `size_per_node` for "mini"."""
    return variant("schedule", SCHEDULES, schedule, bounds)(moves, **bounds)
