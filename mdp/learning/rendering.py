"""A matrix as text."""

from collections.abc import Callable

from mdp.learning.hourly import HourlyMatrices
from mdp.matrix import TransitionMatrix

_CORNER = "from \\ to"
_NOTHING = "."


def table(matrix: TransitionMatrix, *, counts: bool = False) -> str:
    """Rows are node counts before a migration, columns those after; with `counts`, what was seen, not what is likely.

    The last column says how often a row was seen; a row never seen is marked as the prior that it is.
    """

    def cell(row: int, column: int) -> str:
        seen, chance = matrix.observed[row, column], matrix.probabilities[row, column]
        if counts:
            return f"{seen:d}" if seen else _NOTHING
        return f"{chance:.2f}" if chance else _NOTHING

    return _laid_out(matrix, cell)


def summary(matrix: TransitionMatrix) -> str:
    """Where a matrix comes from, in a few lines."""
    origin = matrix.origin
    lines = [f"{len(matrix.nodes)} node counts, {matrix.nodes[0]} to {matrix.nodes[-1]}; {_observed(matrix)}"]
    if "source" in origin:
        lines.append(f"from {origin['source']}")
    if "first" in origin:
        lines.append(f"{origin['first']} to {origin['last']}, {origin['counts']:,} node counts")
    if never := origin.get("never_seen"):
        rows = ", ".join(str(nodes) for nodes in never)
        lines.append(f"never left, so judged by their neighbours: {rows} nodes")
    return "\n".join(lines)


def hours_table(matrices: HourlyMatrices) -> str:
    """One line an hour: how often it was seen, and the chance that the next migration goes up."""
    lines = ["hour   seen  next is up"]
    for hour, own in enumerate(matrices.hours):
        if own is None:
            lines.append(f"{hour:02d}        -  {_NOTHING:>10}  as all hours")
        else:
            lines.append(f"{hour:02d} {own.observations:>8,}  {_chance_of_up(own):>10.2f}")
    lines.append(f"all{matrices.overall.observations:>8,}  {_chance_of_up(matrices.overall):>10.2f}")
    return "\n".join(lines)


def _chance_of_up(matrix: TransitionMatrix) -> float:
    """Over the rows as often as they were seen."""
    up = sum(matrix.observed[row, row + 1 :].sum() for row in range(len(matrix.nodes)))
    return float(up / max(1, matrix.observations))


def _observed(matrix: TransitionMatrix) -> str:
    return f"{matrix.observations:,} migrations seen"


def _laid_out(matrix: TransitionMatrix, cell: Callable[[int, int], str]) -> str:
    size = len(matrix.nodes)
    cells = [[cell(row, column) for column in range(size)] for row in range(size)]
    width = max(4, len(str(matrix.nodes[-1])), *(len(text) for row in cells for text in row)) + 1
    head = _CORNER + "".join(f"{nodes:>{width}d}" for nodes in matrix.nodes) + "     seen"
    lines = [head, "-" * len(head)]
    for nodes, row, seen in zip(matrix.nodes, cells, matrix.observed.sum(axis=1), strict=True):
        note = f"{seen:>9,}" if seen else "    prior"
        lines.append(f"{nodes:>{len(_CORNER)}d}" + "".join(f"{text:>{width}}" for text in row) + note)
    return "\n".join(lines)
