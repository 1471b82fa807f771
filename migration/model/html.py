"""Show plans and assignments in notebooks, as HTML.

Without scripts, style sheets and external resources, so that it is shown wherever HTML is; with colours that can be
told apart on a light and on a dark ground. Every text is escaped: names of jobs and nodes come from users.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from migration.model.ownership import Ownership
from migration.model.rendering import format_amount

if TYPE_CHECKING:
    from migration.model.plan import Plan

_COLOURS = (
    *("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2"),
    *("#9d755d", "#d67195", "#c2a51f", "#79706e", "#2f7f93", "#8867c0"),
)
_LINE = "1px solid rgba(128,128,128,0.4)"
_CELL = f"padding:2px 10px;border-bottom:{_LINE};background:transparent;white-space:nowrap"
_MOST_ROWS = 40  # nodes of a table, before its middle is left out
_MOST_COLUMNS = 256  # of a strip; more tasks than this share a column


def choose_colours(nodes: Iterable[str]) -> dict[str, str]:
    """Return a colour for every node; a dozen nodes have colours of their own."""
    return {node: _COLOURS[index % len(_COLOURS)] for index, node in enumerate(nodes)}


def format_card(title: str, *parts: str) -> str:
    """Return a titled block; the title is text, and the parts are HTML."""
    return (
        '<div style="font-family:sans-serif;font-size:13px;line-height:1.5;max-width:60em;color:inherit">'
        f'<div style="font-weight:bold">{escape(title)}</div>{"".join(parts)}</div>'
    )


def format_line(text: str) -> str:
    """Return a line of text; nothing if it is empty."""
    return f"<div>{escape(text)}</div>" if text else ""


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; the header is text, the cells are HTML. The first column is left-aligned, the others right."""
    if len(rows) > _MOST_ROWS:
        half = _MOST_ROWS // 2
        gap = [f"… {len(rows) - 2 * half} more …", *[""] * (len(header) - 1)]
        rows = [*rows[:half], gap, *rows[-half:]]
    head = "".join(_cell(escape(text), index, "th") for index, text in enumerate(header))
    body = "".join(f"<tr>{''.join(_cell(cell, index, 'td') for index, cell in enumerate(row))}</tr>" for row in rows)
    return (
        '<table style="border-collapse:collapse;margin:6px 0;font-size:13px;color:inherit">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def format_node(node: str, colours: Mapping[str, str]) -> str:
    """Return a node's name behind a square of its colour."""
    square = f"display:inline-block;width:10px;height:10px;margin-right:6px;background:{colours[node]}"
    return f'<span style="{square}"></span>{escape(node)}'


def format_bar(share: float, colour: str = _COLOURS[0]) -> str:
    """Return a bar that is full at a share of 1, and the share in percent."""
    width = 100 * min(max(share, 0.0), 1.0)
    ground = "display:inline-block;width:100px;height:9px;margin-right:6px;background:rgba(128,128,128,0.25)"
    full = f"display:block;width:{width:.0f}%;height:9px;background:{colour}"
    return f'<span style="{ground}"><span style="{full}"></span></span>{share:.0%}'


def format_strip(label: str, ownership: Ownership, colours: Mapping[str, str]) -> str:
    """Return a line in which every task has the colour of its owner; runs have tooltips."""
    parts = "".join(
        f'<span title="{escape(title, quote=True)}" style="flex:{width} 0 0;background:{colours[node]};'
        'border-right:1px solid rgba(128,128,128,0.5)"></span>'
        for node, width, title in _list_blocks(ownership)
    )
    return (
        '<div style="display:flex;align-items:center;margin:3px 0">'
        f'<span style="flex:0 0 5em">{escape(label)}</span>'
        f'<span style="display:flex;flex:1 1 auto;height:16px;max-width:48em">{parts}</span></div>'
    )


def plan_to_html(plan: "Plan") -> str:
    """Return a summary, who owns which task before and after, and a row per node."""
    everyone = [*plan.current.nodes, *plan.joining]
    colours = choose_colours(everyone)
    before, after = _count_tasks(plan.current), _count_tasks(plan.target)
    loads = dict(zip(plan.target.nodes, plan.loads, strict=True))
    rows = [
        [
            format_node(node, colours),
            f"{before[node]} → {after[node]}",
            format_bar(loads[node] / plan.cap if plan.cap else 0.0, colours[node]) if node in loads else "leaves",
        ]
        for node in everyone
    ]
    heaviest = plan.heaviest
    moved = f"moves {len(plan.moves)} of {plan.current.tasks} tasks, {format_amount(plan.cost)} of "
    verdict = "balanced" if plan.balanced else "above the cap"
    return format_card(
        f"Plan ({plan.strategy}): {len(plan.current.nodes)} → {len(plan.target.nodes)} nodes",
        format_line(f"{moved}{format_amount(plan.total_state)} state ({plan.cost_share:.1%})"),
        format_line(f"heaviest {heaviest.node}: work {format_amount(heaviest.work)}, {verdict}, tau {plan.tau:g}"),
        format_line(plan.reason),
        format_line(plan.note),
        format_strip("before", plan.current, colours),
        format_strip("after", plan.target, colours),
        format_table(["node", "tasks", "work of the cap"], rows),
    )


def _cell(content: str, index: int, tag: str) -> str:
    return f'<{tag} style="{_CELL};text-align:{"right" if index else "left"}">{content}</{tag}>'


def _count_tasks(ownership: Ownership) -> Counter[str]:
    count: Counter[str] = Counter()
    for run in ownership.runs:
        count[run.node] += run.stop - run.start
    return count


def _list_blocks(ownership: Ownership) -> list[tuple[str, int, str]]:
    """Return (node, width, tooltip) of the parts of a strip."""
    if len(ownership.runs) <= _MOST_COLUMNS:
        return [
            (run.node, run.stop - run.start, f"{run.node}: tasks {run.start} to {run.stop - 1}")
            for run in ownership.runs
        ]
    owners, tasks = ownership.owners, ownership.tasks
    shown = [tasks * column // _MOST_COLUMNS for column in range(_MOST_COLUMNS)]
    return [(owners[task], 1, f"{owners[task]}: task {task}") for task in shown]
