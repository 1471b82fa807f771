"""Show a key plan in notebooks, as HTML."""

from typing import TYPE_CHECKING

from migration.model.html import choose_colours, format_bar, format_card, format_line, format_node, format_table
from migration.model.rendering import format_amount

if TYPE_CHECKING:
    from migration.keys.key_plan import KeyPlan


def key_plan_to_html(plan: "KeyPlan") -> str:
    """Return a summary and a row per node."""
    colours = choose_colours(plan.nodes)
    gives, takes = (_count(indices.tolist()) for indices in (plan.moves.sources, plan.moves.targets))
    rows = [
        [
            format_node(node, colours),
            f"{gives.get(number, 0):,}",
            f"{takes.get(number, 0):,}",
            format_amount(plan.loads_before[number]),
            format_bar(plan.loads_after[number] / plan.cap if plan.cap else 0.0, colours[node]),
        ]
        for number, node in enumerate(plan.nodes)
    ]
    moved = f"moves {len(plan.moves):,} of {plan.keys:,} keys, {format_amount(plan.cost)} of "
    verdict = "balanced" if plan.balanced else "above the cap"
    return format_card(
        f"Key plan ({plan.strategy}): {len(plan.nodes)} nodes",
        format_line(f"{moved}{format_amount(plan.total_state)} state ({plan.cost_share:.2%})"),
        format_line(f"theta {plan.theta_before:.3g} → {plan.theta_reached:.3g}, {verdict}"),
        format_line(f"routing table: {len(plan.entries):,} entries of at most {plan.most_entries:,}"),
        format_line(plan.reason),
        format_line(plan.note),
        format_table(["node", "gives keys", "takes keys", "work before", "work after, of the cap"], rows),
    )


def _count(nodes: list[int]) -> dict[int, int]:
    count: dict[int, int] = {}
    for node in nodes:
        count[node] = count.get(node, 0) + 1
    return count
