"""In which order moves travel. One schedule a file; adding one is a file here and an entry in `SCHEDULES`."""

from migration.schedule.by_count import phases_by_count
from migration.schedule.by_size import phases_by_size
from migration.schedule.front_door import SCHEDULES, phases
from migration.schedule.mini_migrations import mini_migrations
from migration.schedule.phase import Phase, Transfer

__all__ = ["SCHEDULES", "Phase", "Transfer", "mini_migrations", "phases", "phases_by_count", "phases_by_size"]
