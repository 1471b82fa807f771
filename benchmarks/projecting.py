"""The time, the proven error and the memory of projections on Spark: `make bench-pmc`.

Every case runs in its own process with its own Spark, so that cases do not affect each other. Memory is that of all its
processes, with shared pages counted once.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import matplotlib as mpl
import numpy as np

from benchmarks.report import RESULTS, table

ERROR = 0.003
_POLL_SECONDS = 0.5
_CASE_SECONDS = 1_500


@dataclass(frozen=True)
class Case:
    """A projection, on a master; goals in seconds, and of two executors against one as a factor."""

    name: str
    work: str
    tasks: int
    method: str
    master: str
    goal: float | None = None


CASES = (
    Case("exact, log-normal work", "log-normal", 64, "exact", "local[2]", 90),
    Case("exact, equal work", "equal", 64, "exact", "local[2]", 480),
    Case("approximate", "log-normal", 64, "approximate", "local[2]", 30),
    Case("approximate", "log-normal", 256, "approximate", "local[2]", 120),
)
ONE, TWO = (
    Case(f"exact, {count} executor(s) of one core", "log-normal", 64, "exact", f"local-cluster[{count},1,1024]")
    for count in (1, 2)
)
_SPEED_UP = 1.6
_MOST_MB = 6_000.0


def run_case(case: Case) -> dict[str, Any]:
    """Run a case in this process."""
    import mdp
    from mdp.approximate import train
    from mdp.process import DecisionProcess
    from mdp.projection import CheckpointLocation
    from mdp.spark.session import get_session
    from mdp.spark.workers import SparkWorkers
    from migration import Workload
    from storage import Secret

    rng = np.random.default_rng(1)
    equal = Workload.uniform(case.tasks)
    skewed = Workload(rng.lognormal(0, 0.3, case.tasks), rng.lognormal(0, 0.3, case.tasks))
    workload = equal if case.work == "equal" else skewed
    spark = get_session("bench-pmc", case.master)
    SparkWorkers(spark).map(abs, list(range(64)))  # a session that has never run a job is not ready
    process = DecisionProcess(workload, _walk(), gamma=0.8)
    began = time.monotonic()
    if case.method == "approximate":
        terms = "both" if case.tasks <= 128 else "boundary"
        trained = train(process, terms=terms, workers=SparkWorkers(spark))
        facts: dict[str, Any] = {"gain": trained.gain_over_ssm, "terms": terms}
    else:
        with tempfile.TemporaryDirectory() as folder:
            place = CheckpointLocation(Path(folder).as_uri(), "bench", Secret.of("of this benchmark alone"))
            made = mdp.project(workload, process.matrix, method="exact", error=ERROR, spark=spark, checkpoint=place)
        facts = {"error": made.facts["error"], "sweeps": made.facts["sweeps"]}
    seconds = time.monotonic() - began
    spark.stop()
    return {**facts, "seconds": seconds, "partitions": float(sum(process.partitions().values()))}


def _walk() -> Any:
    """A matrix in which the probability of a step falls with its length; every node count may follow every other."""
    from mdp import TransitionMatrix

    nodes = np.arange(8, 17)
    weight = 0.55 ** np.abs(nodes[:, None] - nodes[None, :])
    weight[np.diag_indices(len(nodes))] *= 0.3
    return TransitionMatrix(nodes.tolist(), weight / weight.sum(axis=1, keepdims=True))


def run_in_process(case: Case) -> dict[str, Any]:
    """Run a case in its own process, and record the peak memory of it and its children."""
    command = [sys.executable, "-m", "benchmarks.projecting", "--case", json.dumps(asdict(case))]
    with tempfile.TemporaryFile("w+") as output:
        started = subprocess.Popen(command, stdout=output, env={**os.environ, "PYSPARK_PYTHON": sys.executable})  # noqa: S603
        most, deadline = 0.0, time.monotonic() + _CASE_SECONDS
        while started.poll() is None:
            most = max(most, _memory_mb(started.pid))
            if time.monotonic() > deadline:
                started.kill()
            time.sleep(_POLL_SECONDS)
        output.seek(0)
        lines = output.read().splitlines()
    if started.returncode:
        raise click.ClickException(f"{case.name} exited with {started.returncode}. See its output above.")
    return {**json.loads(lines[-1]), "memory_mb": most}


def _memory_mb(root: int) -> float:
    """Proportional set sizes of a process and all below it, in MB."""
    total, waiting = 0.0, [root]
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        with suppress(OSError):  # the process may have exited
            rollup = (process / "smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1_000
            for children in process.glob("task/*/children"):
                waiting += [int(child) for child in children.read_text().split()]
    return total


def _draw(found: list[tuple[Case, dict[str, Any]]]) -> Path:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 0.7 * len(found) + 1.2), layout="constrained")
    names = [f"{case.name}, m = {case.tasks}" for case, _ in found]
    axes.barh(names, [one["seconds"] for _, one in found], color="#4c72b0", label="measured")
    for place, (case, _) in enumerate(found):
        if case.goal is not None:
            axes.plot([case.goal] * 2, [place - 0.4, place + 0.4], color="#c44e52", lw=2)
    axes.plot([], [], color="#c44e52", lw=2, label="goal")
    axes.invert_yaxis()
    axes.set(xlabel="seconds", title="Projected migration costs through Spark, 8 to 16 nodes")
    axes.legend()
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "projecting.png"
    figure.savefig(path, dpi=110)
    return path


@click.command()
@click.option("--case", "asked", hidden=True)
@click.option("--only", multiple=True, help="words of the cases to run")
@click.option("--rounds", default=1, show_default=True, help="rounds that compare one executor with two")
def main(asked: str | None, only: tuple[str, ...], rounds: int) -> None:
    """Projections through Spark: seconds, proven error, memory; two executors against one."""
    if asked is not None:
        print(json.dumps(run_case(Case(**json.loads(asked)))))
        return
    found = []
    for case in (*CASES, *((ONE, TWO) * rounds)):
        if all(word in f"{case.name} m = {case.tasks}" for word in only):
            click.echo(f"{case.name}, m = {case.tasks}, {case.master}", err=True)
            found.append((case, run_in_process(case)))
    rows = [
        [
            f"{case.name}, m = {case.tasks}",
            case.master,
            f"{one['partitions']:.3g}",
            f"{one['seconds']:.1f}",
            "" if case.goal is None else f"{case.goal:g}",
            f"{one['error']:.3%}" if "error" in one else f"{one['gain']:.1%} less than ssm",
            f"{one['memory_mb']:,.0f}",
        ]
        for case, one in found
    ]
    header = ["projection", "master", "partitions", "seconds", "goal", "proven error", "MB"]
    print(
        table(
            f"gamma 0.8, tau 0.2; error at most {ERROR:.1%} of all state, memory at most {_MOST_MB:,.0f} MB",
            header,
            rows,
        )
    )
    singles, doubles = ([one["seconds"] for case, one in found if case == which] for which in (ONE, TWO))
    if singles and doubles:
        factor = np.median(singles) / np.median(doubles)
        print(f"\ntwo executors are {factor:.2f} times as fast as one; the goal is {_SPEED_UP:g}")
    print(f"\nchart: {_draw(found).relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
