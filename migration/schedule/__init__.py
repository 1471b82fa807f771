"""Order the moves of a plan in phases. One schedule per file; a new one needs a file and an entry in `SCHEDULES`."""

from migration.schedule.by_count import schedule_by_count
from migration.schedule.by_size import schedule_by_size
from migration.schedule.mini_migrations import schedule_mini_migrations
from migration.schedule.schedules import SCHEDULES, schedule_moves
from migration.schedule.transfers import Transfer, TransferPhase

__all__ = [
    "SCHEDULES",
    "Transfer",
    "TransferPhase",
    "schedule_by_count",
    "schedule_by_size",
    "schedule_mini_migrations",
    "schedule_moves",
]
