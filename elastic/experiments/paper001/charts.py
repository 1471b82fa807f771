"""Charts of the experiments of paper 001."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from elastic.experiments.results import Rows, group_by
from elastic.experiments.style import INK, PALE, add_legend, add_title, label_axes, make_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {
    "H": "#1c2733",
    "KG": "#1c2733",
    "hash": "#1c2733",
    "PoTC": "#98a3ad",
    "potc": "#98a3ad",
    "On-Greedy": "#c9962f",
    "on-greedy": "#c9962f",
    "Off-Greedy": "#7d5ba6",
    "off-greedy": "#7d5ba6",
    "G": "#2f74b5",
    "PKG": "#2f74b5",
    "pkg": "#2f74b5",
    "D-Choices": "#5aa9a3",
    "d-choices": "#5aa9a3",
    "W-Choices": "#b5343c",
    "w-choices": "#b5343c",
    "SG": "#4c9a5b",
    "shuffle": "#4c9a5b",
    "pair-split": "#6b7885",
}
_SERIES = ("#5aa9a3", "#4c9a5b", "#c9962f", "#7d5ba6", "#98a3ad", "#6b7885")
_LEAST = 1e-8  # imbalances below are drawn here, because the axis is logarithmic


def draw_datasets(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 8.5, 4)
    places = range(len(rows))
    axes.bar(places, [row.heaviest_percent for row in rows], 0.5, color="#2f74b5", label="here")
    known = [(place, row.paper_heaviest_percent) for place, row in enumerate(rows) if row.paper_heaviest_percent]
    axes.plot(*zip(*known, strict=True), "D", color="#b5343c", markersize=6, label="in the paper")
    axes.set_xticks(places, [f"{row.stream}\n{row.keys:,} keys" for row in rows])
    add_legend(axes)
    label_axes(axes, "share of the heaviest key, %", "", "%")
    return add_title(
        figure, "Streams", "LN1 and LN2 are those of the paper; others have its shares of the heaviest key."
    )


def draw_imbalance(title: str) -> "Callable[[Rows], Figure]":
    """Make the function that draws a panel for each stream."""

    def draw(rows: Rows) -> "Figure":
        streams = group_by(rows, "stream")
        figure, (panels,) = make_panels(len(streams), 4.2 * len(streams), 5, sharey=True)
        for axes, (stream, mine) in zip(panels, streams.items(), strict=True):
            workers = [*group_by(mine, "workers")]
            _draw_series(axes, group_by(mine, "technique"), "workers", "average")
            floors = [(row.workers, row.floor) for row in mine[:: len(mine) // len(workers)] if row.floor]
            if floors:
                axes.plot(*zip(*floors, strict=True), ":", color=INK, linewidth=2, label="floor of two choices")
            _use_log_axes(axes, workers)
            label_axes(axes, stream, "workers", "average imbalance / messages")
        add_legend(panels[-1], loc="center left", bbox_to_anchor=(1, 0.5))
        caption = "Averages over time and over hash functions. Floor: (p1 / 2 - 1 / W) / 2."
        return add_title(figure, title, caption)

    return draw


def draw_over_time(rows: Rows) -> "Figure":
    streams, counts = group_by(rows, "stream"), [*group_by(rows, "workers")]
    figure, panels = make_panels(len(streams), 4.4 * len(streams), 3.6 * len(counts) + 0.6, len(counts), sharey=True)
    for column, (stream, mine) in enumerate(streams.items()):
        for line, (workers, of_count) in enumerate(group_by(mine, "workers").items()):
            axes = panels[line][column]
            _draw_series(axes, group_by(of_count, "technique"), "message", "imbalance", marker="")
            axes.set_yscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g}")
            label_axes(axes, f"{stream}, {workers} workers", "million messages", "imbalance / all messages")
    add_legend(panels[0][-1], loc="center left", bbox_to_anchor=(1, 0.5))
    return add_title(
        figure, "Local estimates are as good as global ones; probing is not", "L5P: probed at every sample."
    )


def draw_sources(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 8.5, 5)
    for colour, (sources, mine) in zip(_SERIES, group_by(rows, "sources").items(), strict=False):
        for split, series in group_by(mine, "split").items():
            axes.plot(
                [row.workers for row in series],
                [max(row.average, _LEAST) for row in series],
                "o-" if split == "skewed" else "o--",
                color=colour,
                label=f"{sources} sources, {split}",
            )
    _use_log_axes(axes, [*group_by(rows, "workers")])
    add_legend(axes, loc="center left", bbox_to_anchor=(1, 0.5))
    label_axes(axes, "average imbalance / messages", "workers")
    caption = "Skewed: the source of an edge is chosen by the hash of its source vertex."
    return add_title(figure, "Skewed sources balance as well as even ones", caption)


def draw_delays(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 8.5, 5)
    _draw_series(axes, group_by(rows, "technique"), "delay_ms", "rows_per_second")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    add_legend(axes, loc="lower left")
    label_axes(axes, "modelled throughput, rows/s", "processing time of a row, ms")
    return add_title(figure, "The busiest worker limits throughput", "A model: see the note of the experiment.")


def draw_periods(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 8.5, 5)
    for name, series in group_by(rows, "technique").items():
        if name == "KG":
            axes.axhline(series[0].rows_per_second, color=_COLOURS[name], linestyle="--", label="KG")
        else:
            axes.plot(
                [row.counters for row in series],
                [row.rows_per_second for row in series],
                "o-",
                color=_COLOURS[name],
                label=name,
            )
    axes.set_xscale("log")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    add_legend(axes, loc="lower right")
    label_axes(axes, "modelled throughput, rows/s", "counters of all workers at the end of a period")
    caption = "From left to right: longer periods. A model: see the note of the experiment."
    return add_title(figure, "Longer periods cost memory and save partial results", caption)


def draw_memory(rows: Rows) -> "Figure":
    streams = group_by(rows, "stream")
    figure, (panels,) = make_panels(len(streams), 4.2 * len(streams), 4.6, sharey=True)
    for axes, (stream, mine) in zip(panels, streams.items(), strict=True):
        _draw_series(axes, group_by(mine, "technique"), "workers", "copies_per_key")
        _use_log_axes(axes, [*group_by(mine, "workers")])
        axes.yaxis.set_major_formatter("{x:g}")
        label_axes(axes, stream, "workers", "counters per key")
    add_legend(panels[-1], loc="center left", bbox_to_anchor=(1, 0.5))
    return add_title(figure, "W-Choices pays only for the head", "Counters at the end of the stream, never merged.")


def draw_speed(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 8.5, 5)
    _draw_series(axes, group_by(rows, "technique"), "workers", "rows_per_second")
    _use_log_axes(axes, [*group_by(rows, "workers")])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g}")
    add_legend(axes, loc="center left", bbox_to_anchor=(1, 0.5))
    label_axes(axes, "million rows per second of processor time", "workers")
    return add_title(figure, "Routing speed, LN1", "One core; keys are hashed already.")


def _draw_series(axes: Any, series: Any, x: str, y: str, marker: str = "o") -> None:
    others = iter(_SERIES * 2)
    for name, rows in series.items():
        base = name.removesuffix(" + combine").partition(",")[0]
        axes.plot(
            [getattr(row, x) for row in rows],
            [max(getattr(row, y), _LEAST) for row in rows],
            "--" if name.endswith("combine") else "-",
            marker=marker,
            markersize=5,
            linewidth=1.6,
            color=_COLOURS.get(base) or next(others, PALE),
            label=name,
        )


def _use_log_axes(axes: Any, ticks: list[int]) -> None:
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(ticks, map(str, ticks))
    axes.minorticks_off()


def draw_engine(rows: Rows) -> "Figure":
    figure, ((axes,),) = make_panels(1, 8, 3.5)
    axes.barh([row.technique for row in rows], [row.rows_per_second for row in rows], 0.6, color="#2f74b5")
    axes.invert_yaxis()
    label_axes(axes, "throughput of the job", "rows per second")
    return add_title(figure, "Splitting a hot key", "One key has 30 % of all rows; medians over runs.")
