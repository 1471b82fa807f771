"""Format a key plan as text: a summary and a row per node."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from migration.model.rendering import bar, format_amount, shorten_rows

if TYPE_CHECKING:
    from migration.keys.key_plan import KeyPlan

_BAR_COLUMN = 26  # characters of a bar with its percentage


def render_key_plan(plan: "KeyPlan") -> str:
    return "\n".join([*_summary(plan), "", *_table(plan)])


def _summary(plan: "KeyPlan") -> list[str]:
    heaviest = plan.heaviest
    moved = f"{format_amount(plan.cost)} of {format_amount(plan.total_state)} state ({100 * plan.cost_share:.2f} %)"
    bound = f"{plan.ratio:.3g} times the lower bound" if plan.lower_bound else "the lower bound is 0"
    verdict = "" if plan.balanced else "  ABOVE THE CAP"
    overhead = f"; {format_amount(plan.overhead)} besides the state" if plan.overhead else ""
    lines = [
        f"{plan.strategy}: {plan.keys:,} keys, {len(plan.nodes)} nodes, theta {plan.theta:g}",
        f"moves {len(plan.moves):,} keys, {moved}, {bound}{overhead}",
        f"routing table: {len(plan.entries):,} entries of at most {plan.most_entries:,}",
        (
            f"theta {plan.theta_before:.3g} -> {plan.theta_reached:.3g}; heaviest {heaviest.node}: work "
            f"{format_amount(heaviest.work)}, cap {format_amount(plan.cap)}{verdict}"
        ),
    ]
    if plan.copies is not None:
        lines.append(
            f"switches roles of {plan.switches:,} of these keys; makes {len(plan.copies):,} copies, "
            f"{format_amount(plan.background_cost)} in the background"
        )
    if plan.pinned:
        pinned, work = sum(plan.pinned), sum(plan.loads_before)
        lines.append(f"pinned: {format_amount(pinned)} of {format_amount(work)} work ({100 * pinned / work:.1f} %)")
    lines.extend(text for text in (plan.reason, plan.note) if text)
    return lines


def _table(plan: "KeyPlan") -> list[str]:
    moves, count = plan.moves, len(plan.nodes)
    gives, takes, entries = (
        np.bincount(moves.sources, weights=moves.sizes, minlength=count),
        np.bincount(moves.targets, weights=moves.sizes, minlength=count),
        np.bincount(plan.entries.targets, minlength=count),
    )
    width = max(len("node"), *(len(node) for node in plan.nodes))
    numbers = ("gives", "takes", "entries", "pinned") if plan.pinned else ("gives", "takes", "entries")
    rows = [_row("node", width, ("before, of cap", "after, of cap"), numbers)]
    for index, node in enumerate(plan.nodes):
        bars = (bar(plan.loads_before[index], plan.cap), bar(plan.loads_after[index], plan.cap))
        given, taken = (format_amount(value) if value else "" for value in (gives[index], takes[index]))
        pinned = format_amount(plan.pinned[index]) if plan.pinned and plan.pinned[index] else ""
        rows.append(_row(node, width, bars, (given, taken, f"{entries[index]:,}" if entries[index] else "", pinned)))
    return shorten_rows(rows)


def _row(node: str, width: int, bars: Iterable[str], numbers: Iterable[str]) -> str:
    cells = [f"{node:<{width}}", *(f"{cell:<{_BAR_COLUMN}}" for cell in bars), *(f"{cell:>8}" for cell in numbers)]
    return "  ".join(cells).rstrip()
