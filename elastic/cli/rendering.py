"""Responses of the API as tables and lines for a terminal."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

_UNITS = ("B", "kB", "MB", "GB", "TB")
_LONG_STEP_SECONDS = 1.0
_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red", "bright_cyan", "bright_magenta", "bright_yellow")


def format_size(count: float) -> str:
    """Return a number of bytes with a fitting unit."""
    for unit in _UNITS[:-1]:
        if abs(count) < 1_000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:.1f} {_UNITS[-1]}"


def _create_table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", no_wrap=index == 0, overflow="fold")
    return table


def _render_strip(assignment: Mapping[str, Any]) -> Text:
    """Return one block per task, in the colour of its node."""
    colour = {node["name"]: _COLOURS[index % len(_COLOURS)] for index, node in enumerate(assignment["nodes"])}
    owner = {task: node["name"] for node in assignment["nodes"] for run in node["runs"] for task in range(*run)}
    strip = Text()
    for task in range(assignment["tasks"]):
        strip.append("█", style=colour.get(owner.get(task, ""), "dim"))
    return strip


def render_status(status: Mapping[str, Any], load: Mapping[str, Any], assignment: Mapping[str, Any]) -> Group:
    owned = {node["name"]: sum(stop - first for first, stop in node["runs"]) for node in assignment["nodes"]}
    nodes = _create_table("node", "tasks", "state", "busy", "pending", "")
    for node in status["nodes"]:
        busy = load["utilisation"].get(node["name"])
        nodes.add_row(
            node["name"],
            str(owned.get(node["name"], 0)),
            format_size(sum(unit["state_bytes"] for unit in node["units"])),
            "" if busy is None else f"{busy:.0%}",
            str(node["pending_steps"]),
            _describe_activity(node),
        )
    problems = [Text(problem, style="red") for problem in status["problems"]]
    return Group(Text(_format_summary(status), style="bold"), *problems, _render_strip(assignment), nodes)


def _describe_activity(node: Mapping[str, Any]) -> str:
    """Return what a node does that is starting, in a long step, or follows units of others; else an empty text."""
    step = node["step"]
    if not node["serving"]:
        return "starting"
    if step is None or step["seconds"] < _LONG_STEP_SECONDS:
        behind = f", {node['lag']} batches behind" if node.get("lag") else ""
        return f"{len(node['standbys'])} standbys{behind}" if node.get("standbys") else ""
    return f"batch {step['batch']} for {step['seconds']:.0f} s" + (", overdue" if step["overdue"] else "")


def format_line(status: Mapping[str, Any], migrations: Sequence[Mapping[str, Any]]) -> str:
    """Return a job and its migrations as one line of plain text."""
    return "; ".join([_format_summary(status), *map(_format_migration, migrations)])


def _format_summary(status: Mapping[str, Any]) -> str:
    return (
        f"{status['name']}: {status['state']}, batch {status['published_batch']:,} published, "
        f"{status['pending_batches']} pending, {status['rows']:,} rows, {len(status['nodes'])} nodes, "
        + (f"{status['spares']} spares, " if status["spares"] else "")
        + f"{status['losses']} losses"
    )


def render_keys(keys: Sequence[Mapping[str, Any]]) -> Table:
    """Return one row per key; the stage is shown if there are several."""
    stages = ["stage"] if len({key["stage"] for key in keys}) > 1 else []
    table = _create_table("hash", *stages, "task", "node", "rows", "seconds", "share", "state", "key")
    table.columns[-1].justify = "left"
    for key in keys:
        table.add_row(
            key["hash"],
            *(Text(key[stage]) for stage in stages),
            f"{key['task']} guest" if key["guest"] else str(key["task"]),
            key["node"],
            f"{key['rows']:,}",
            f"{key['seconds']:.3g}",
            f"{key['share']:.1%}",
            format_size(key["state_bytes"]),
            Text("" if key["name"] is None else key["name"]),
        )
    return table


def render_plans(candidates: Sequence[Mapping[str, Any]]) -> Group:
    """Return one row per strategy, and below the table why each plan is as it is, or why there is none."""
    plans = [candidate["plan"] for candidate in candidates if candidate["plan"] is not None]
    optional = {"background_cost": "background", "future_cost": "future cost"}
    costs = [cost for cost in optional if any(plan[cost] is not None for plan in plans)]
    table = _create_table(
        "strategy", "moves", "state moved", "share", "max load", "cap", *(optional[cost] for cost in costs)
    )
    for candidate in candidates:
        plan = candidate["plan"]
        if plan is None:
            continue
        table.add_row(
            candidate["strategy"],
            str(len(plan["moves"])),
            format_size(plan["cost"]),
            f"{plan['cost_share']:.1%}",
            f"{max(plan['loads']):.3g}",
            f"{plan['cap']:.3g}",
            *("" if plan[cost] is None else format_size(plan[cost]) for cost in costs),
        )
    reasons = [_render_reason(candidate["strategy"], candidate) for candidate in candidates]
    return Group(*([table] if plans else []), *reasons)


def render_levels(balance: Mapping[str, Any], level: str) -> Group:
    """Return the plan to move keys, or at level auto the plans of both levels and the reason for the choice."""
    table = _create_table("level", "strategy", "moves", "state moved", "share", "above mean", "entries")
    names = ("tasks", "keys") if level == "auto" else (level,)
    for name in names:
        found = balance[name]
        plan = found["plan"]
        if plan is None:
            continue
        before = f"{plan['theta_before']:.1%} -> " if name == "keys" else ""
        table.add_row(
            name,
            plan["strategy"],
            f"{plan['moves'] if name == 'keys' else len(plan['moves']):,} {name}",
            format_size(plan["cost"]),
            f"{plan['cost_share']:.1%}",
            f"{before}{found['overload']:.1%}",
            f"{plan['entries']:,} of {plan['most_entries']:,}" if name == "keys" else "",
        )
    reasons = [_render_reason(name, balance[name]) for name in names]
    choice = [Text(f"chosen {balance['reason']}", style="bold")] if level == "auto" else []
    return Group(*([table] if table.row_count else []), *reasons, *choice)


def _render_reason(name: str, candidate: Mapping[str, Any]) -> Text:
    plan = candidate["plan"]
    if plan is None:
        return Text(f"{name}: {candidate['problem']['detail']}", style="red")
    return Text(f"{name}: {'; '.join(filter(None, (plan['reason'], plan['note'])))}")


def _format_migration(migration: Mapping[str, Any]) -> str:
    progress = migration["progress"]
    waiting = f"; waiting for {'; '.join(progress['waiting_for'])}" if progress["overdue"] else ""
    kind = migration["level"]
    before, after = migration["nodes_before"], migration["nodes_after"]
    return (
        f"migration {migration['number']}: {f'{before} -> {after}' if kind == 'tasks' else after} nodes, "
        f"{progress['phase']}, {progress[f'{kind}_done']:,} of {progress[kind]:,} {kind}, "
        f"{format_size(progress['bytes_done'])} of {format_size(progress['bytes'])}{waiting}"
    )


def render_migration(migration: Mapping[str, Any]) -> Table:
    progress = migration["progress"]
    left = progress["seconds_left"]
    grid = Table.grid()  # unlike a bar alone, it ends with a newline
    grid.add_row(Text(_format_migration(migration) + ("" if left is None else f", {left:.1f} s left")))
    kind = migration["level"]
    grid.add_row(ProgressBar(total=max(progress[kind], 1), completed=progress[f"{kind}_done"], width=60))
    return grid


def _format_fact(name: str, value: str | float) -> str:
    if isinstance(value, str):
        return value
    return format_size(value) if name.endswith("bytes") else f"{value:.2f}" if isinstance(value, float) else str(value)


def render_journal(records: Sequence[Mapping[str, Any]]) -> Table:
    table = _create_table("number", "time", "event", "facts")
    table.columns[-1].justify = "left"
    for record in records:
        time = datetime.fromtimestamp(record["at_ms"] / 1_000).astimezone().isoformat(" ", "seconds")
        facts = ", ".join(
            f"{name}={_format_fact(name, value)}"
            for name, value in record.items()
            if name not in ("number", "at_ms", "kind") and isinstance(value, str | int | float)
        )
        table.add_row(str(record["number"]), time, record["kind"], Text(facts))
    return table
