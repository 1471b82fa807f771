"""The experiments of paper 000 on the engine, by name."""

from collections.abc import Mapping

from elastic.experiments.paper000.charts.engine import draw_query, draw_scale_out, draw_throughput
from elastic.experiments.paper000.engine import query, scale_out, throughput
from elastic.experiments.paper000.engine.lab import EngineLab
from elastic.experiments.results import Experiment

_SETUP = (
    "Nodes are threads of one process, and the cost of a row is slept, not computed, so that a few cores stand for as "
    "many processors as there are nodes. A batch is published when the slowest node has taken it, and some batches are "
    "in flight, so latencies are those of a full queue. Ideal has uniform keys of the same volume."
)

ENGINE_EXPERIMENTS: Mapping[str, Experiment[EngineLab]] = {
    "figure13": Experiment(
        "Throughput and latency of a word count, against the fluctuation",
        throughput.measure_by_fluctuation,
        throughput.format_rows,
        draw_throughput("fluctuation f"),
        note=_SETUP,
    ),
    "figure14": Experiment(
        "Throughput of a word count and a self-join, against theta",
        throughput.measure_by_theta,
        throughput.format_rows,
        draw_throughput("allowed overload theta"),
        note=f"{_SETUP} Streams are generated: the paper's traces are not available. PKG is not compared.",
    ),
    "figure15": Experiment(
        "Throughput of a word count and a self-join over time, while a node joins",
        scale_out.measure,
        scale_out.format_rows,
        draw_scale_out,
        note=f"{_SETUP} Streams are generated: the paper's traces are not available. PKG is not compared.",
    ),
    "figure16": Experiment(
        "Throughput of TPC-H query 5 over time, while hot customers and suppliers change",
        query.measure,
        query.format_rows,
        draw_query,
        note=f"{_SETUP} The query reads a generated stream, not files of DBGen, and its window is a few intervals.",
    ),
}
