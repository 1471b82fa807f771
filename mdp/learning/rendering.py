"""Format matrices as text."""

from mdp.learning.hourly import HourlyMatrices
from mdp.matrix import TransitionMatrix

_CORNER = "from \\ to"
_NOTHING = "."


def format_matrix(matrix: TransitionMatrix) -> str:
    """Format the probabilities: rows are node counts before a migration, columns those after.

    The last column has the observations of a row; a row without any is marked as the prior.
    """
    cells = [[f"{chance:.2f}" if chance else _NOTHING for chance in row] for row in matrix.probabilities.tolist()]
    width = max(4, len(str(matrix.nodes[-1]))) + 1
    head = _CORNER + "".join(f"{nodes:>{width}d}" for nodes in matrix.nodes) + "     seen"
    lines = [head, "-" * len(head)]
    for nodes, row, seen in zip(matrix.nodes, cells, matrix.observed.sum(axis=1), strict=True):
        note = f"{seen:>9,}" if seen else "    prior"
        lines.append(f"{nodes:>{len(_CORNER)}d}" + "".join(f"{text:>{width}}" for text in row) + note)
    return "\n".join(lines)


def format_summary(matrix: TransitionMatrix) -> str:
    """Describe the origin of a matrix in a few lines."""
    origin = matrix.origin
    lines = [
        f"{len(matrix.nodes)} node counts, {matrix.nodes[0]} to {matrix.nodes[-1]}; {_format_observations(matrix)}"
    ]
    if "source" in origin:
        lines.append(f"from {origin['source']}")
    if "first" in origin:
        lines.append(f"{origin['first']} to {origin['last']}, {origin['counts']:,} node counts")
    if never := origin.get("never_seen"):
        rows = ", ".join(str(nodes) for nodes in never)
        lines.append(f"without observations, so derived from their neighbours: {rows} nodes")
    return "\n".join(lines)


def format_hours(matrices: HourlyMatrices) -> str:
    """One line per hour: its observations, and the probability that the next migration goes up."""
    lines = ["hour   seen  next is up"]
    for hour, own in enumerate(matrices.hours):
        if own is None:
            lines.append(f"{hour:02d}        -  {_NOTHING:>10}  as all hours")
        else:
            lines.append(f"{hour:02d} {own.observations:>8,}  {_chance_of_up(own):>10.2f}")
    lines.append(f"all{matrices.overall.observations:>8,}  {_chance_of_up(matrices.overall):>10.2f}")
    return "\n".join(lines)


def _chance_of_up(matrix: TransitionMatrix) -> float:
    """The mean over rows, weighted by their observations."""
    up = sum(matrix.observed[row, row + 1 :].sum() for row in range(len(matrix.nodes)))
    return float(up / max(1, matrix.observations))


def _format_observations(matrix: TransitionMatrix) -> str:
    return f"{matrix.observations:,} migrations seen"
