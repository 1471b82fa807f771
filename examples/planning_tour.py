"""A day of scaling, planned: `make tour`.

Eight nodes become ten, thirteen, nine and eight again. Four strategies plan the same day, the first plan is shown in
full with its transfer schedule, and a picture of the day is written.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np

from migration import Assignment, Plan, Workload, plan, plan_sequence
from migration.schedule import schedule_moves

TASKS = 64
DAY = [10, 13, 9, 8]
TAU = 0.2
PICTURE = Path("build/planning_tour.png")


def generate_workload(seed: int = 7) -> Workload:
    """Return a workload as a monitor would report it: log-normal work in seconds and state in bytes."""
    rng = np.random.default_rng(seed)
    return Workload(rng.lognormal(0, 0.35, TASKS), np.round(3e6 * rng.lognormal(0, 0.35, TASKS)))


def plan_step_by_step(start: Assignment, workload: Workload, strategy: str) -> list[Plan]:
    """Plan the day with one strategy, starting from eight nodes balanced by that strategy."""
    now = plan(start, len(start.nodes), workload, TAU, strategy).target
    plans = []
    for nodes in DAY:
        plans.append(plan(now, nodes, workload, TAU, strategy))
        now = plans[-1].target
    return plans


def compare(days: Mapping[str, Sequence[Plan]]) -> None:
    header = "".join(f"{len(made.current.nodes)} -> {len(made.target.nodes)}".rjust(12) for made in days["ssm"])
    print(f"{'state moved, % of all':<22}{header}{'whole day':>12}   heaviest node, % of the cap")
    for name, plans in days.items():
        moved = "".join(f"{100 * made.cost_share:12.1f}" for made in plans)
        worst = max(100 * made.heaviest.work / made.cap for made in plans)
        print(f"{name:<22}{moved}{sum(100 * made.cost_share for made in plans):12.1f}   {worst:.0f}")


def show_schedule(made: Plan) -> None:
    megabytes = made.total_state / 1e6
    print(
        f"\nThe {len(made.moves)} moves of the first plan ({made.cost / 1e6:.1f} of {megabytes:.0f} MB) are transferred"
    )
    print(f"  in {len(list(schedule_moves(made.moves, 'count')))} phases in which no node sends or receives twice,")
    total = sum(phase.duration for phase in schedule_moves(made.moves, "size"))
    print(f"  or in pieces, as long as the busiest link takes for its {total / 1e6:.1f} MB,")
    minis = list(schedule_moves(made.moves, "mini", tasks_per_node=1))
    print(f"  or as {len(minis)} mini-migrations with one task in flight per node.")


def draw(days: Mapping[str, Sequence[Plan]], path: Path) -> None:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(days), 1, figsize=(10, 1.7 * len(days)), sharex=True, layout="constrained")
    for axis, (name, plans) in zip(axes, days.items(), strict=True):
        strips = [plans[0].current.owners, *(made.target.owners for made in plans)]
        numbers = {
            node: number for number, node in enumerate(dict.fromkeys(node for strip in strips for node in strip))
        }
        axis.imshow([[numbers[node] for node in strip] for strip in strips], aspect="auto", cmap="tab20", vmax=19)
        for row, made in enumerate(plans, start=1):
            moved = [move.task for move in made.moves]
            axis.plot(moved, [row] * len(moved), "k.", markersize=4)
        axis.set_yticks(range(len(strips)), [f"{len(set(strip))} nodes" for strip in strips], fontsize=7)
        total = sum(100 * made.cost_share for made in plans)
        axis.set_title(f"{name}: {total:.0f} % of all state moved over the day", fontsize=9, loc="left")
    axes[-1].set_xlabel("task (colour: node that owns it; dot: its state moved)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"\npicture: {path}")


def main() -> None:
    workload = generate_workload()
    start = Assignment.even(TASKS, 8)
    days = {name: plan_step_by_step(start, workload, name) for name in ("ssm", "even", "consistent-hash")}
    days = {"oms (knows the day)": plan_sequence(days["ssm"][0].current, DAY, workload, TAU), **days}
    print(days["ssm"][0], "\n")
    compare(days)
    show_schedule(days["ssm"][0])
    draw(days, PICTURE)


if __name__ == "__main__":
    main()
