"""Show migrations in notebooks, as HTML."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from migration.model.html import choose_colours, format_bar, format_card, format_line, format_strip
from migration.model.rendering import format_amount

if TYPE_CHECKING:
    from elastic.control.handle import MigrationProgress
    from migration import Ownership, Plan


def migration_to_html(title: str, progress: "MigrationProgress", strips: Sequence[str] = ()) -> str:
    """Return how far a migration is, and what it waits for."""
    done, total, what = progress.tasks_done, progress.tasks, "tasks"
    if not total and progress.keys:
        done, total, what = progress.keys_done, progress.keys, "keys"
    moved = (
        f"{done:,} of {total:,} {what}, {format_amount(progress.bytes_done)} of {format_amount(progress.bytes)} bytes"
    )
    left = "" if not progress.seconds_left else f", about {progress.seconds_left:.1f} s left"
    return format_card(
        f"{title}: {progress.phase}",
        f"<div>{format_bar(done / total if total else 1.0)}</div>",
        format_line(f"{moved}, {progress.seconds:.1f} s{left}"),
        *(format_line(f"waits for {awaited}") for awaited in progress.waiting_for),
        *strips,
    )


def format_strips(plan: "Plan", now: "Ownership") -> list[str]:
    """Return who owned which task before a migration, owns it now, and will own it."""
    colours = choose_colours([*plan.current.nodes, *plan.joining])
    stages = (("before", plan.current), ("now", now), ("planned", plan.target))
    return [format_strip(label, ownership, colours) for label, ownership in stages]
