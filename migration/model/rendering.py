"""Format a plan as text: a summary, a strip of tasks, a row per node."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migration.model.plan import Plan

_GLYPHS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_STRIP_WIDTH = 64  # characters; more tasks than this share a character
_BAR_WIDTH = 20  # characters for a node at the cap
_MOST_ROWS = 40  # node rows before the middle of the table is left out


def render_plan(plan: "Plan") -> str:
    return "\n".join([*_summary(plan), "", *_strip(plan), "", *_table(plan)])


def _summary(plan: "Plan") -> list[str]:
    heaviest = plan.heaviest
    share = 100 * heaviest.work / plan.cap if plan.cap else 0.0
    nodes = f"{len(plan.current.nodes)} -> {len(plan.target.nodes)} nodes"
    moved = f"{format_amount(plan.cost)} of {format_amount(plan.total_state)} state ({100 * plan.cost_share:.1f} %)"
    verdict = "" if plan.balanced else "  ABOVE THE CAP"
    load = f"work {format_amount(heaviest.work)}, {share:.0f} % of the cap {format_amount(plan.cap)}"
    lines = [
        f"{plan.strategy}: {nodes}, {plan.current.tasks} tasks, tau {plan.tau:g}",
        f"moves {len(plan.moves)} tasks, {moved}",
        f"heaviest {heaviest.node}: {load}{verdict}",
    ]
    if plan.standbys is not None:
        switches, copies = len(plan.switches), len(plan.copies)
        lines.append(
            f"switches roles for {switches} of these tasks; makes {copies} copies, "
            f"{format_amount(plan.background_cost)} in the background; "
            f"a standby counts as {plan.standby_share:g} of the work"
        )
    if plan.future_cost is not None:
        lines.append(f"foresees {format_amount(plan.future_cost)} of discounted state moves afterwards")
    lines.extend(text for text in (plan.reason, plan.note) if text)
    return lines


def _strip(plan: "Plan") -> list[str]:
    everyone = [*plan.current.nodes, *plan.joining]
    glyphs = {node: _GLYPHS[index % len(_GLYPHS)] for index, node in enumerate(everyone)}
    tasks = plan.current.tasks
    width = min(tasks, _STRIP_WIDTH)
    shown = [tasks * column // width for column in range(width)]
    before, after = plan.current.owners, plan.target.owners
    moved = {move.task * width // tasks for move in plan.moves}
    scale = "" if width == tasks else f"   (a letter is {tasks / width:.3g} tasks)"
    return [
        "before  " + "".join(glyphs[before[task]] for task in shown) + scale,
        "after   " + "".join(glyphs[after[task]] for task in shown),
        "moving  " + "".join("^" if column in moved else "." for column in range(width)),
    ]


def _table(plan: "Plan") -> list[str]:
    everyone = [*plan.current.nodes, *plan.joining]
    held: list[Counter[str]] = [Counter(), Counter()]
    for count, ownership in zip(held, (plan.current, plan.target), strict=True):
        for run in ownership.runs:
            count[run.node] += run.stop - run.start
    gives = _totals((move.source, move.size) for move in plan.moves)
    takes = _totals((move.target, move.size) for move in plan.moves)
    loads = dict(zip(plan.target.nodes, plan.loads, strict=True))

    name_width = max(len("node"), *(len(node) for node in everyone))
    rows = [f"  {'node':<{name_width}}  {'tasks':>13}  {'work of cap':<{_BAR_WIDTH + 6}}  {'gives':>10}  {'takes':>10}"]
    for index, node in enumerate(everyone):
        work = bar(loads[node], plan.cap) if node in loads else "leaves"
        rows.append(
            f"{_GLYPHS[index % len(_GLYPHS)]} {node:<{name_width}}  {held[0][node]:>5} -> {held[1][node]:<4}  "
            f"{work:<{_BAR_WIDTH + 6}}  {gives.get(node, ''):>10}  {takes.get(node, ''):>10}".rstrip()
        )
    return shorten_rows(rows)


def shorten_rows(rows: list[str]) -> list[str]:
    """Leave out the middle of a table with a row per node if it is long."""
    if len(rows) <= _MOST_ROWS:
        return rows
    half = _MOST_ROWS // 2
    return [*rows[:half], f"  ... {len(rows) - 2 * half} more nodes ...", *rows[-half:]]


def _totals(sizes: Iterable[tuple[str, float]]) -> dict[str, str]:
    totals: dict[str, float] = defaultdict(float)
    for node, size in sizes:
        totals[node] += size
    return {node: format_amount(total) for node, total in totals.items()}


def bar(load: float, cap: float) -> str:
    """A bar that is full at the cap, and the load in percent of the cap."""
    share = load / cap if cap else 0.0
    full = min(round(share * _BAR_WIDTH), _BAR_WIDTH)
    return "█" * full + "·" * (_BAR_WIDTH - full) + f" {100 * share:>3.0f} %"


def format_amount(size: float) -> str:
    """Three digits and a decimal prefix: 17.7M."""
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(size) >= factor:
            return f"{size / factor:.3g}{prefix}"
    return f"{size:.3g}"
