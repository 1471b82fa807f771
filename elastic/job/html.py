"""Show a job in notebooks, as HTML."""

from elastic.job.status import JobStatus
from elastic.operators.graph import JobGraph
from elastic.operators.graph.drawing import to_svg
from migration import Ownership
from migration.model.html import choose_colours, format_card, format_line, format_node, format_strip, format_table
from migration.model.rendering import format_amount


def job_to_html(status: JobStatus, ownership: Ownership, graph: JobGraph) -> str:
    """Return what a job is doing, its graph, which node owns which task, and a row per node."""
    by_name = {node.name: node for node in status.nodes}
    everyone = [*ownership.nodes, *(name for name in by_name if name not in ownership.nodes)]
    colours = choose_colours(everyone)
    rows = []
    for name in everyone:
        node = by_name.get(name)
        state = "starting" if node is None or not node.serving else "serving"
        figures = ["-"] * 3
        if node is not None:
            figures = [f"{node.rows:,}", format_amount(node.state_bytes), f"{node.pending_steps:,}"]
        rows.append([format_node(name, colours), state, str(len(ownership.tasks_of(name))), *figures])
    return format_card(
        f"Job {status.name}: {status.state}",
        format_line(
            f"{len(ownership.nodes)} nodes, {ownership.tasks} tasks, batch {status.last_batch}, {status.rows:,} rows"
        ),
        *(format_line(problem) for problem in status.problems),
        to_svg(graph),
        format_strip("tasks", ownership, colours),
        format_table(["node", "", "tasks", "rows", "state bytes", "pending steps"], rows),
    )
