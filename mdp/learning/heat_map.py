"""Draw a matrix as a heat map in a PNG file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mdp.errors import MissingPackage
from mdp.learning.hourly import HOURS, HourlyMatrices
from mdp.matrix import TransitionMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INK, _PALE, _BAR = "#1c2733", "#7a8794", "#7fa6c9"
_COLOURS = ["#f7f9fb", "#d5e4f0", "#9cc3de", "#5596c4", "#22689f", "#0b3c6b"]  # near white to deep blue
_DARK = 0.55  # of the scale, from where text on it is white
_LEGIBLE = 20  # rows, beyond which numbers no longer fit into cells
_DPI = 150


def draw_matrix(matrix: TransitionMatrix | HourlyMatrices, path: str | Path) -> Path:
    """Write the heat map: one matrix with its numbers, or a small one for each hour of the day."""
    figure = _one(matrix) if isinstance(matrix, TransitionMatrix) else _by_hour(matrix)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=_DPI, facecolor="white")
    return Path(path)


def _one(matrix: TransitionMatrix) -> "Figure":
    size = len(matrix.nodes)
    side = min(14.0, 2.5 + 0.62 * size)
    figure = _figure(side + 2.2, side + 0.6)
    axes, bars = figure.subplots(1, 2, width_ratios=[size, 2], sharey=True)
    _heat(axes, matrix, matrix.probabilities.max())
    if size <= _LEGIBLE:
        _write_numbers(axes, matrix)
    labels = [str(nodes) for nodes in matrix.nodes]
    axes.set_xticks(range(size), labels)
    axes.set_yticks(range(size), labels)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("nodes after the next migration", labelpad=8)
    axes.set_ylabel("nodes now", labelpad=8)
    _draw_bars(bars, matrix)
    figure.suptitle("Probability of the next migration", x=0.02, ha="left", fontsize=14, fontweight="bold", color=_INK)
    figure.supxlabel(_caption(matrix), x=0.02, ha="left", fontsize=8, color=_PALE)
    return figure


def _by_hour(matrices: HourlyMatrices) -> "Figure":
    figure = _figure(12.5, 9.0)
    grid = figure.subplots(4, 6, sharex=True, sharey=True)
    most = max(matrices.at(hour).probabilities.max() for hour in range(HOURS))
    ticks = range(0, len(matrices.nodes), max(1, len(matrices.nodes) // 4))
    labels = [str(matrices.nodes[tick]) for tick in ticks]
    for hour, axes in enumerate(grid.flat):
        own = matrices.hours[hour]
        _heat(axes, matrices.at(hour), most, alpha=0.35 if own is None else 1.0)
        axes.set_xticks(ticks, labels)
        axes.set_yticks(ticks, labels)
        seen = "as all hours" if own is None else f"{own.observations:,} observed"
        axes.set_title(f"{hour:02d}:00   {seen}", fontsize=9, color=_PALE if own is None else _INK, loc="left")
    title = "Probability of the next migration, by hour of the last one"
    figure.suptitle(title, x=0.02, ha="left", fontsize=14, fontweight="bold", color=_INK)
    figure.supxlabel("nodes after the next migration", fontsize=10, color=_INK)
    figure.supylabel("nodes now", fontsize=10, color=_INK)
    return figure


def _figure(width: float, height: float) -> "Figure":
    try:
        from matplotlib.figure import Figure  # imported late: it is optional and slow to import
    except ModuleNotFoundError as missing:
        raise MissingPackage("drawing a matrix", "matplotlib", "charts") from missing
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))


def _heat(axes: Any, matrix: TransitionMatrix, most: float, alpha: float = 1.0) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("chances", _COLOURS)
    size = len(matrix.nodes)
    axes.imshow(matrix.probabilities, cmap=colours, vmin=0, vmax=most, aspect="equal", alpha=alpha)
    axes.set_xticks(np.arange(size - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(size - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0, colors=_INK)
    axes.spines[:].set_visible(False)


def _write_numbers(axes: Any, matrix: TransitionMatrix) -> None:
    """The probability in per cent, and below it the number of observations."""
    most = matrix.probabilities.max()
    for row, column in np.ndindex(matrix.probabilities.shape):
        chance, seen = matrix.probabilities[row, column], int(matrix.observed[row, column])
        if chance < 0.0005:
            continue
        colour = "white" if chance > _DARK * most else _INK
        share = f"{100 * chance:.0f} %" if chance >= 0.095 else f"{100 * chance:.1f} %"
        axes.text(column, row - (0.08 if seen else 0), share, ha="center", va="center", fontsize=9, color=colour)
        if seen:
            axes.text(column, row + 0.27, f"{seen:,}", ha="center", va="center", fontsize=6, color=colour, alpha=0.8)


def _draw_bars(axes: Any, matrix: TransitionMatrix) -> None:
    """The number of observations per row."""
    seen = matrix.observed.sum(axis=1)
    axes.barh(range(len(seen)), seen, height=0.72, color=_BAR)
    for row, count in enumerate(seen.tolist()):
        axes.text(count, row, f" {count:,}" if count else " none", va="center", fontsize=8, color=_INK)
    axes.set_xlim(0, 1.6 * max(1, int(seen.max())))
    axes.set_xticks([])
    axes.tick_params(which="both", length=0, labelleft=False)
    axes.set_title("observations", fontsize=9, color=_PALE, loc="left")
    axes.spines[:].set_visible(False)


def _caption(matrix: TransitionMatrix) -> str:
    origin = matrix.origin
    parts = [f"{matrix.observations:,} migrations"]
    if "first" in origin:
        parts.append(f"{origin['first']} to {origin['last']}")
    if "source" in origin:
        parts.append(Path(str(origin["source"]).partition(",")[0]).name)
    return ", ".join(parts) + ". Large: probability; small: observations."
