"""Run experiments, and save their numbers and charts."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from elastic.experiments.results import Experiment, ExperimentResult, write_csv
from elastic.experiments.style import check_matplotlib, save_figure

_Lab = TypeVar("_Lab")


def run_experiments(
    experiments: Mapping[str, Experiment[_Lab]],
    lab: _Lab,
    output: Path,
    names: Iterable[str] = (),
    *,
    on_done: Callable[[ExperimentResult], None] = lambda _outcome: None,
) -> Sequence[ExperimentResult]:
    """Run the named experiments, or all; each writes a CSV file and a chart to `output` as soon as it is done."""
    check_matplotlib()
    output.mkdir(parents=True, exist_ok=True)
    results = []
    for name in dict.fromkeys(names or experiments):
        experiment, began = experiments[name], time.monotonic()
        rows = experiment.measure(lab)
        csv, picture = output / f"{name}.csv", output / f"{name}.png"
        write_csv(rows, csv)
        save_figure(experiment.draw(rows), picture)
        seconds = time.monotonic() - began
        table = experiment.format_rows(rows)
        results.append(ExperimentResult(name, experiment.title, rows, table, csv, picture, seconds, experiment.note))
        on_done(results[-1])
    return results
