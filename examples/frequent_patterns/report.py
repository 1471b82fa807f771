"""The tables that a campaign prints at its end."""

import click
from rich.console import Console
from rich.table import Table

from examples.frequent_patterns.audit import Audit
from examples.frequent_patterns.audited_job import AuditedJob
from examples.frequent_patterns.disturbances import Disturbances

_SHOWN = 5  # wrong batches
_WIDTH = 120


def show(audit: Audit, disturbances: Disturbances, audited: AuditedJob, minutes: float, seed: int) -> None:
    console = Console(width=_WIDTH)
    console.print(_migrations(disturbances))
    console.print(_kills(disturbances, audited))
    console.print(_summary(audit, disturbances, audited, minutes, seed))
    for wrong in audit.wrong[:_SHOWN]:
        click.echo(wrong)


def _migrations(disturbances: Disturbances) -> Table:
    table = _table("migrations", "at s", "nodes", "mode", "transfer", "tasks", "state KB", "seconds", "outcome")
    for past, migration in disturbances.migrations:
        progress = migration.progress()
        nodes = "{} -> {}".format(*migration.nodes)
        moved = (f"{progress.tasks_done}", f"{progress.bytes_done / 1024:.0f}", f"{progress.seconds:.1f}")
        table.add_row(f"{past:.0f}", nodes, migration.mode, migration.transfer, *moved, progress.phase)
    return table


def _kills(disturbances: Disturbances, audited: AuditedJob) -> Table:
    """Return the killed nodes with their recoveries; a node that was being removed need not recover."""
    table = _table("kills", "at s", "node", "while migrating", "recovered after s", "rows replayed")
    recoveries = list(audited.job.status().recoveries)
    for kill in disturbances.kills:
        found = next((recovery for recovery in recoveries if recovery["node"] == kill.node), None)
        if found is not None:
            recoveries.remove(found)
        recovery_cells = (f"{found['seconds']:.1f}", f"{found['replayed_rows']:,}") if found is not None else ("", "")
        table.add_row(f"{kill.at:.0f}", kill.node, "yes" if kill.while_migrating else "no", *recovery_cells)
    return table


def _summary(audit: Audit, disturbances: Disturbances, audited: AuditedJob, minutes: float, seed: int) -> Table:
    table = _table(f"frequent patterns, {minutes:g} minutes, seed {seed}", "metric", "value")
    status = audited.job.status()
    numbers = {
        "batches checked": audit.batches,
        "batches that differ from the miner": len(audit.wrong),
        "texts": audit.batches * audit.per_batch,
        "maximum number of patterns": audit.max_patterns,
        "migrations": len(disturbances.migrations),
        "nodes killed": len(disturbances.kills),
        "node losses detected": status.losses,
    }
    for name, number in numbers.items():
        table.add_row(name, f"{number:,}")
    table.add_row("verdict", "exact" if audited.is_right and disturbances.is_complete else "wrong")
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table
