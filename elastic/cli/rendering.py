"""Answers of the API as tables for a terminal."""

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


def size(count: float) -> str:
    """Bytes with the unit that fits."""
    for unit in _UNITS[:-1]:
        if abs(count) < 1_000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:.1f} {_UNITS[-1]}"


def _table(title: str | None, *columns: str) -> Table:
    shown = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for place, column in enumerate(columns):
        shown.add_column(column, justify="left" if place == 0 else "right", no_wrap=place == 0, overflow="fold")
    return shown


def strip(assignment: Mapping[str, Any]) -> Text:
    """Every task as a block in the colour of its node."""
    colour = {node["name"]: _COLOURS[place % len(_COLOURS)] for place, node in enumerate(assignment["nodes"])}
    owner = {task: node["name"] for node in assignment["nodes"] for run in node["runs"] for task in range(*run)}
    drawn = Text()
    for task in range(assignment["tasks"]):
        drawn.append("█", style=colour.get(owner.get(task, ""), "dim"))
    return drawn


def status(found: Mapping[str, Any], load: Mapping[str, Any], assignment: Mapping[str, Any]) -> Group:
    owned = {node["name"]: sum(stop - first for first, stop in node["runs"]) for node in assignment["nodes"]}
    nodes = _table(None, "node", "tasks", "state", "busy", "waiting", "")
    for node in found["nodes"]:
        busy = load["utilisation"].get(node["name"])
        nodes.add_row(
            node["name"],
            str(owned.get(node["name"], 0)),
            size(sum(unit["state_bytes"] for unit in node["units"])),
            "" if busy is None else f"{busy:.0%}",
            str(node["waiting_steps"]),
            _activity(node),
        )
    problems = [Text(problem, style="red") for problem in found["problems"]]
    return Group(Text(_head(found), style="bold"), *problems, strip(assignment), nodes)


def _activity(node: Mapping[str, Any]) -> str:
    """What a node does, if it takes long."""
    step = node["step"]
    if not node["serving"]:
        return "starting"
    if step is None or step["seconds"] < _LONG_STEP_SECONDS:
        return ""
    return f"batch {step['batch']} for {step['seconds']:.0f} s" + (", overdue" if step["overdue"] else "")


def line(found: Mapping[str, Any], migrations: Sequence[Mapping[str, Any]]) -> str:
    """A job and its migration under way or last, without colours and bars."""
    return "; ".join([_head(found), *map(_described, migrations)])


def _head(found: Mapping[str, Any]) -> str:
    return (
        f"{found['name']}: {found['state']}, batch {found['published_batch']:,} published, "
        f"{found['batches_ahead']} ahead, {found['rows']:,} rows, {len(found['nodes'])} nodes, "
        f"{found['losses']} lost so far"
    )


def plans(candidates: Sequence[Mapping[str, Any]]) -> Table:
    shown = _table(None, "strategy", "moves", "state moved", "share", "heaviest", "cap", "later", "why")
    shown.columns[-1].justify = "left"
    for one in candidates:
        if one["plan"] is None:
            shown.add_row(one["strategy"], *[""] * 6, Text(one["problem"]["detail"], style="red"))
            continue
        plan = one["plan"]
        later = plan["future_cost"]
        shown.add_row(
            one["strategy"],
            str(len(plan["moves"])),
            size(plan["cost"]),
            f"{plan['cost_share']:.1%}",
            f"{max(plan['loads']):.3g}",
            f"{plan['cap']:.3g}",
            "" if later is None else size(later),
            Text("; ".join(filter(None, (plan["reason"], plan["note"])))),
        )
    return shown


def _described(found: Mapping[str, Any]) -> str:
    progress = found["progress"]
    waits = f"; waits for {'; '.join(progress['waiting_for'])}" if progress["overdue"] else ""
    return (
        f"migration {found['number']}: {found['nodes_before']} -> {found['nodes_after']} nodes, {progress['phase']}, "
        f"{progress['tasks_done']} of {progress['tasks']} tasks, {size(progress['bytes_done'])} of "
        f"{size(progress['bytes'])}{waits}"
    )


def migration(found: Mapping[str, Any]) -> Table:
    progress = found["progress"]
    left = progress["seconds_left"]
    shown = Table.grid()  # unlike a bar alone, it ends with its line
    shown.add_row(Text(_described(found) + ("" if left is None else f", {left:.1f} s left")))
    shown.add_row(ProgressBar(total=max(progress["tasks"], 1), completed=progress["tasks_done"], width=60))
    return shown


def _fact(name: str, value: str | float) -> str:
    if isinstance(value, str):
        return value
    return size(value) if name.endswith("bytes") else f"{value:.2f}" if isinstance(value, float) else str(value)


def journal(records: Sequence[Mapping[str, Any]]) -> Table:
    shown = _table(None, "number", "when", "what", "facts")
    shown.columns[-1].justify = "left"
    for record in records:
        when = datetime.fromtimestamp(record["at_ms"] / 1_000).astimezone().isoformat(" ", "seconds")
        facts = ", ".join(
            f"{name}={_fact(name, value)}"
            for name, value in record.items()
            if name not in ("number", "at_ms", "kind") and isinstance(value, str | int | float)
        )
        shown.add_row(str(record["number"]), when, record["kind"], Text(facts))
    return shown
