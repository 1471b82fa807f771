"""Experiments by name, and a function that runs them."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from mdp.experiments import discount, foresight, migration_cost, planning_time, projection_time
from mdp.experiments.charts.discount import draw_discount
from mdp.experiments.charts.foresight import draw_foresight
from mdp.experiments.charts.migration_cost import draw_migration_cost
from mdp.experiments.charts.planning_time import draw_times_by_tasks, draw_times_by_tau
from mdp.experiments.charts.projection_time import draw_projection_time
from mdp.experiments.charts.style import check_matplotlib, save_figure
from mdp.experiments.lab import Lab
from mdp.experiments.results import Experiment, ExperimentResult, write_csv

EXPERIMENTS: Mapping[str, Experiment] = {
    "figure9": Experiment(
        "State moved by a migration, against tau",
        migration_cost.measure,
        migration_cost.format_rows,
        draw_migration_cost,
    ),
    "figure10": Experiment(
        "Time of a plan of ssm, against tau",
        planning_time.measure_by_tau,
        planning_time.format_rows,
        draw_times_by_tau,
    ),
    "figure11": Experiment(
        "Time of a projection, against tau", projection_time.measure, projection_time.format_rows, draw_projection_time
    ),
    "figure12": Experiment(
        "Time of a plan of ssm and state it moves, against the number of tasks",
        planning_time.measure_by_tasks,
        planning_time.format_rows,
        draw_times_by_tasks,
    ),
    "figure14": Experiment(
        "State moved and time of a projection, against gamma", discount.measure, discount.format_rows, draw_discount
    ),
    "quality": Experiment("Benefit of foresight", foresight.measure, foresight.format_rows, draw_foresight),
}


def run_experiments(
    lab: Lab,
    output: Path,
    names: Iterable[str] = EXPERIMENTS,
    *,
    on_done: Callable[[ExperimentResult], None] = lambda _outcome: None,
) -> Sequence[ExperimentResult]:
    """Run experiments in order; each writes a CSV file and a chart to `output` as soon as it is done."""
    check_matplotlib()
    output.mkdir(parents=True, exist_ok=True)
    results = []
    for name in dict.fromkeys(names):
        experiment, began = EXPERIMENTS[name], time.monotonic()
        rows = experiment.measure(lab)
        table, picture = output / f"{name}.csv", output / f"{name}.png"
        write_csv(rows, table)
        save_figure(experiment.draw(rows), picture)
        seconds = time.monotonic() - began
        results.append(
            ExperimentResult(name, experiment.title, rows, experiment.format_rows(rows), table, picture, seconds)
        )
        on_done(results[-1])
    return results
