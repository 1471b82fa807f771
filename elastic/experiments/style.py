"""The common style of charts: plain axes, a title and a caption."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdp.errors import MissingPackage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, PALE, GRID = "#1c2733", "#6b7885", "#e4e9ee"
BARS = 2  # standard errors that an error bar reaches to either side
_DPI = 150


def check_matplotlib() -> None:
    """Raise now instead of after minutes of measuring."""
    if find_spec("matplotlib") is None:
        raise MissingPackage("charts of experiments", "matplotlib", "charts")


def make_panels(columns: int, width: float, height: float, rows: int = 1, **grid: Any) -> "tuple[Figure, Any]":
    """A figure, and its axes in rows and columns."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1, wspace=0.04))
    axes = figure.subplots(rows, columns, squeeze=False, **grid)
    for one in axes.flat:
        one.spines[["top", "right"]].set_visible(False)
        one.spines[["left", "bottom"]].set_color(PALE)
        one.tick_params(colors=INK, labelsize=9)
        one.grid(visible=True, color=GRID, linewidth=0.8)
        one.set_axisbelow(True)
    return figure, axes


def add_title(figure: "Figure", title: str, caption: str) -> "Figure":
    figure.suptitle(title, x=0.015, ha="left", fontsize=14, fontweight="bold", color=INK)
    figure.supxlabel(caption, x=0.015, ha="left", fontsize=8, color=PALE)
    return figure


def label_axes(axes: Any, title: str, xlabel: str = "", ylabel: str = "") -> None:
    axes.set_title(title, loc="left", fontsize=10.5, color=INK, pad=9)
    axes.set_xlabel(xlabel, fontsize=9.5, color=INK)
    axes.set_ylabel(ylabel, fontsize=9.5, color=INK)


def use_log_scale(axis: Any) -> None:
    """Make an axis logarithmic, with plain numbers at 1, 2 and 5 times the powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:,g}")


def draw_points(axes: Any, rows: Sequence[tuple[float, float, float]], colour: str, *, hollow: bool = False) -> None:
    """Points (x, y, standard error) with error bars; hollow ones are approximate."""
    for x, y, spread in rows:
        axes.errorbar(
            x,
            y,
            BARS * spread,
            fmt="o",
            color=colour,
            markersize=6.5,
            markerfacecolor="white" if hollow else colour,
            markeredgewidth=1.6,
            elinewidth=1.4,
            capsize=3,
            zorder=3,
        )


def draw_band(
    axes: Any, x: Sequence[float], rows: Sequence[tuple[float, float, float]], colour: str, name: str
) -> None:
    """A line of medians in a band of (median, lower, upper)."""
    medians, lower, upper = zip(*rows, strict=True)
    axes.fill_between(x, lower, upper, color=colour, alpha=0.16, linewidth=0)
    axes.plot(x, medians, "o-", color=colour, linewidth=1.8, markersize=5.5, label=name)


def label_line_end(axes: Any, x: float, y: float, text: str, colour: str, lift: float = 0.0) -> None:
    """Write the name of a line after its last point."""
    axes.annotate(
        text,
        (x, y),
        (9, lift),
        textcoords="offset points",
        va="center",
        fontsize=9.5,
        color=colour,
        annotation_clip=False,
    )


def add_legend(axes: Any, handles: Sequence[Any] | None = None, **where: Any) -> None:
    settings: dict[str, Any] = {"frameon": False, "fontsize": 9, "labelcolor": INK, **where}
    if handles is None:
        axes.legend(**settings)
    else:
        axes.legend(handles=list(handles), **settings)


def legend_entry(colour: str, name: str, *, hollow: bool = False, line: str = "") -> Any:
    """Make an entry of a legend."""
    from matplotlib.lines import Line2D

    face = "white" if hollow else colour
    style: Any = line
    return Line2D(
        [],
        [],
        color=colour,
        marker="o",
        linestyle=style,
        markersize=6.5,
        markerfacecolor=face,
        markeredgewidth=1.6,
        label=name,
    )


def save_figure(figure: "Figure", path: Path) -> Path:
    figure.savefig(path, dpi=_DPI, facecolor="white")
    return path
