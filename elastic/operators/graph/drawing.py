"""The graph of a job as a small picture: SVG without scripts, for notebooks and the page of a job."""

from collections import Counter, defaultdict
from html import escape
from typing import NamedTuple

from elastic.operators.graph.job_graph import JobGraph

_WIDTH, _HEIGHT = 132, 30  # of a node, in pixels
_GAP_X, _GAP_Y = 40, 14
_MARGIN = 6
_CHARACTERS = 18  # of a name that fit into a node


class PlacedNode(NamedTuple):
    """A node of the graph, in columns from left to right and rows from top to bottom."""

    kind: str  # "input", "stage" or "sink"
    name: str
    column: int
    row: int
    label: str


def place(graph: JobGraph) -> tuple[list[PlacedNode], list[tuple[int, int]]]:
    """Return the nodes with their places, and the edges as pairs of positions in that list. O(nodes + edges).

    The column of a node is one more than the greatest of what it reads: inputs are first, results behind their stage.
    """
    before: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for source, target in graph.links():
        before[target].append(source)
    columns: dict[tuple[str, str], int] = {}
    rows: Counter[int] = Counter()
    placed = []
    for node in graph.nodes():  # inputs, then stages in their order, then sinks
        column = columns[node] = max((columns[source] + 1 for source in before[node]), default=0)
        kind, name = node
        label = graph.sinks.get(name, "results") if kind == "sink" else name
        placed.append(PlacedNode(kind, name, column, rows[column], label))
        rows[column] += 1
    numbers = {node: number for number, node in enumerate(columns)}
    return placed, [(numbers[source], numbers[target]) for source, target in graph.links()]


def to_svg(graph: JobGraph) -> str:
    """Return the graph as a picture. Colours come from the surroundings, so it fits light and dark pages."""
    nodes, edges = place(graph)
    width = max(_x(node) for node in nodes) + _WIDTH + _MARGIN
    height = max(_y(node) for node in nodes) + _HEIGHT + _MARGIN
    shapes = [*(_draw_edge(nodes[source], nodes[target]) for source, target in edges), *map(_draw_node, nodes)]
    return (
        f'<svg role="img" aria-label="graph of the job" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" '
        f'stroke="currentColor" fill="none">{"".join(shapes)}</svg>'
    )


def _x(node: PlacedNode) -> int:
    return _MARGIN + node.column * (_WIDTH + _GAP_X)


def _y(node: PlacedNode) -> int:
    return _MARGIN + node.row * (_HEIGHT + _GAP_Y)


def _draw_node(node: PlacedNode) -> str:
    shown = node.label if len(node.label) <= _CHARACTERS else f"{node.label[: _CHARACTERS - 1]}…"
    radius = 4 if node.kind == "stage" else _HEIGHT // 2
    dash = ' stroke-dasharray="4 3"' if node.kind == "sink" else ""
    title = f"{node.kind} {node.name}" if node.kind != "sink" else f"results of {node.name}"
    return (
        f"<g><title>{escape(title)}</title>"
        f'<rect x="{_x(node)}" y="{_y(node)}" width="{_WIDTH}" height="{_HEIGHT}" rx="{radius}"{dash}/>'
        f'<text x="{_x(node) + _WIDTH // 2}" y="{_y(node) + 19}" text-anchor="middle" stroke="none" '
        f'fill="currentColor">{escape(shown)}</text></g>'
    )


def _draw_edge(source: PlacedNode, target: PlacedNode) -> str:
    x1, y1 = _x(source) + _WIDTH, _y(source) + _HEIGHT // 2
    x2, y2 = _x(target), _y(target) + _HEIGHT // 2
    middle = (x1 + x2) // 2
    arrow = f"M{x2 - 6} {y2 - 4}L{x2} {y2}L{x2 - 6} {y2 + 4}"
    return f'<path d="M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}{arrow}"/>'
