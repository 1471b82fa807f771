"""The experiments of paper 003 by name."""

from collections.abc import Mapping

from elastic.experiments.paper003 import discount, foresight, migration_cost, planning_time, projection_time
from elastic.experiments.paper003.charts.discount import draw_discount
from elastic.experiments.paper003.charts.foresight import draw_foresight
from elastic.experiments.paper003.charts.migration_cost import draw_migration_cost
from elastic.experiments.paper003.charts.planning_time import draw_times_by_tasks, draw_times_by_tau
from elastic.experiments.paper003.charts.projection_time import draw_projection_time
from elastic.experiments.paper003.lab import Lab
from elastic.experiments.results import Experiment

EXPERIMENTS: Mapping[str, Experiment[Lab]] = {
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
