"""All experiments by name, and how to run some of them."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from mdp.experiments import discount, foresight, migration_cost, planning_time, projection_time
from mdp.experiments.lab import Lab
from mdp.experiments.outcome import Experiment, Outcome, write_csv
from mdp.experiments.pictures.discounts import draw_discounts
from mdp.experiments.pictures.foresights import draw_foresights
from mdp.experiments.pictures.migration_costs import draw_migration_costs
from mdp.experiments.pictures.planning_times import draw_times_by_tasks, draw_times_by_tau
from mdp.experiments.pictures.projection_times import draw_projection_times
from mdp.experiments.pictures.style import check_drawable, save

EXPERIMENTS: Mapping[str, Experiment] = {
    "figure9": Experiment(
        "State moved by a migration, against tau", migration_cost.measured, migration_cost.shown, draw_migration_costs
    ),
    "figure10": Experiment(
        "Time of a plan of ssm, against tau",
        planning_time.measured_by_tau,
        planning_time.shown,
        draw_times_by_tau,
    ),
    "figure11": Experiment(
        "Time of a projection, against tau", projection_time.measured, projection_time.shown, draw_projection_times
    ),
    "figure12": Experiment(
        "Time of a plan of ssm and state it moves, against the number of tasks",
        planning_time.measured_by_tasks,
        planning_time.shown,
        draw_times_by_tasks,
    ),
    "figure14": Experiment(
        "State moved and time of a projection, against gamma", discount.measured, discount.shown, draw_discounts
    ),
    "quality": Experiment("What foresight is worth", foresight.measured, foresight.shown, draw_foresights),
}


def run(
    lab: Lab,
    output: Path,
    names: Iterable[str] = EXPERIMENTS,
    *,
    on_done: Callable[[Outcome], None] = lambda _outcome: None,
) -> Sequence[Outcome]:
    """One after another, each with a CSV file and a picture in `output`, written as soon as it is done."""
    check_drawable()
    output.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for name in dict.fromkeys(names):
        experiment, began = EXPERIMENTS[name], time.monotonic()
        rows = experiment.measured(lab)
        table, picture = output / f"{name}.csv", output / f"{name}.png"
        write_csv(rows, table)
        save(experiment.drawn(rows), picture)
        seconds = time.monotonic() - began
        outcomes.append(Outcome(name, experiment.title, rows, experiment.shown(rows), table, picture, seconds))
        on_done(outcomes[-1])
    return outcomes
