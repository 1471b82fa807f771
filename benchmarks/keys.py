"""The time, the memory and the cost of planning by key: `make bench-keys`.

Every size is measured in a process of its own, so that its peak memory is its own.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np

from benchmarks.report import RESULTS, duration, table, timed
from migration import KeyLoads, KeyPlan, MigrationError, kernel_info, plan_keys
from migration.keys import DEFAULT_THETA, KEY_STRATEGIES
from migration.keys.bound import lower_bound
from migration.keys.compact import group_keys, materialise, plan_records
from migration.keys.problem import KeyProblem, NotPlaced
from migration.keys.workloads import KeyWorkload

NODES = 15
SKEW = 0.85  # of Zipf: the paper's default
DRIFT = 0.5  # the work of one node grows by this share between the balanced start and the plan
QUALITY_KEYS, INTERVALS = 10_000, 8
QUALITY = ((0.5, 0.02, 3_000), (0.5, 0.08, 300), (1.0, 0.02, 1_000), (1.0, 0.08, 3_000), (1.0, 0.08, 300))
TO_BOUND = 1.15  # the goal, in the median
SIZES = (10**4, 10**5, 10**6, 10**7)
PAPER = {10**6: "6 s (compact: 0.6 s)"}  # paper 000, Mixed on every key and on compact records
DEGREES = (3, 8)  # of discretisation, as powers of two
GOALS = {  # seconds
    ("mixed", 10**5): 5e-3,
    ("mixed", 10**6): 60e-3,
    ("mixed", 10**7): 1.0,
    **{(f"compact plan, R={2**r}", 10**6): 2e-3 for r in DEGREES},
    **{(f"compact materialise, R={2**r}", 10**6): 20e-3 for r in DEGREES},
}

# What is too slow or too large beyond a size: brute force plans once for every entry.
LARGEST = {"mixed-bf": 10**4, "simple": 10**6, "readj": 10**5, "compact": 10**6}


class Measure(NamedTuple):
    """One row: how a strategy did at one size; `note` says why there is no plan."""

    name: str
    keys: int
    seconds: float = 0.0
    p90: float = 0.0
    moves: int = 0
    entries: int = 0
    cost_share: float = 0.0
    ratio: float = 0.0
    note: str = ""


def make_loads(keys: int, seed: int = 1) -> KeyLoads:
    """Zipf work on a table that was balanced before the work of one node grew."""
    rng = np.random.default_rng(seed)
    hashes = rng.permutation(np.arange(keys, dtype=np.int64) * 0x9E3779B97F4A7C1)
    home = rng.integers(0, NODES, keys, dtype=np.int32)
    before = rng.permutation(1e6 / np.arange(1, keys + 1) ** SKEW)
    start = plan_keys(KeyLoads(hashes, home, None, before), NODES, strategy="mixed", relax=True)
    current = home.copy()
    order = np.argsort(hashes)
    current[order[np.searchsorted(hashes, start.entries.hashes, sorter=order)]] = start.entries.targets
    after = _let_grow(before, current, 0, rng)
    size = (before + after) * rng.uniform(0.5, 2, keys)
    return KeyLoads(hashes, home, current, after, size)


def _let_grow(
    work: np.ndarray[Any, np.dtype[np.float64]],
    current: np.ndarray[Any, np.dtype[np.int32]],
    node: int,
    rng: np.random.Generator,
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Exchange the work of keys on a node with heavier keys elsewhere until the node carries DRIFT more."""
    here, elsewhere = np.flatnonzero(current == node), rng.permutation(np.flatnonzero(current != node))
    partners = elsewhere[: len(here)]
    gain = np.maximum(work[partners] - work[here], 0)
    swapped = (gain > 0) & (np.cumsum(gain) <= DRIFT * work[here].sum())
    grown = work.copy()
    grown[here[swapped]], grown[partners[swapped]] = work[partners[swapped]], work[here[swapped]]
    return grown


def measure_strategy(name: str, loads: KeyLoads) -> Measure:
    """Time whole calls of `plan_keys`, with the paper's defaults."""
    if loads.keys > LARGEST.get(name, loads.keys):
        return Measure(name, loads.keys, note=f"not beyond {LARGEST[name]:,} keys")

    def make_plan() -> KeyPlan:
        return plan_keys(loads, NODES, strategy=name, relax=True)

    try:
        plan = make_plan()
    except MigrationError as error:
        return Measure(name, loads.keys, note=type(error).__name__)
    spent = timed(make_plan, 1.0, 3, 500)
    return Measure(
        name,
        loads.keys,
        spent.median,
        spent.p90,
        len(plan.moves),
        len(plan.entries),
        plan.cost_share,
        plan.ratio,
        "relaxed" if plan.relaxed else "",
    )


def measure_loads(loads: KeyLoads) -> Measure:
    """Time the checks of `KeyLoads`, which come before every plan."""
    columns = (loads.hashes, loads.home, loads.current, loads.work, loads.size)
    spent = timed(lambda: KeyLoads(*columns), 1.0, 3, 500)
    return Measure("KeyLoads", loads.keys, spent.median, spent.p90)


def measure_compact_plan(r: int, loads: KeyLoads) -> Measure:
    """Time Mixed over compact records, without building them, which is the work of nodes."""
    name = f"compact plan, R={2**r}"
    if loads.keys > LARGEST["compact"]:
        return Measure(name, loads.keys, note=f"not beyond {LARGEST['compact']:,} keys")
    records = group_keys(loads, r).records
    spent = timed(lambda: plan_records(records, NODES, relax=True), 1.0, 3, 500)
    return Measure(name, loads.keys, spent.median, spent.p90, note=f"{len(records):,} records")


def measure_materialising(r: int, loads: KeyLoads) -> Measure:
    """Time the way back from records to keys; the note has the largest error of a node's load."""
    name = f"compact materialise, R={2**r}"
    if loads.keys > LARGEST["compact"]:
        return Measure(name, loads.keys, note=f"not beyond {LARGEST['compact']:,} keys")
    keys = group_keys(loads, r)
    planned = plan_records(keys.records, NODES, relax=True)
    spent = timed(lambda: materialise(planned.records, keys), 1.0, 3, 500)
    actual = np.bincount(materialise(planned.records, keys), weights=loads.work, minlength=NODES)
    error = float((np.abs(actual - planned.loads_after) / actual).max())
    return Measure(name, loads.keys, spent.median, spent.p90, note=f"load error {error:.3%}")


# A further row is an entry here: what it is called, and how it is measured for given loads.
ROWS: Mapping[str, Callable[[KeyLoads], Measure]] = {
    "KeyLoads": measure_loads,
    **{name: partial(measure_strategy, name) for name in KEY_STRATEGIES},
    **{f"compact plan, {r}": partial(measure_compact_plan, r) for r in DEGREES},
    **{f"compact materialise, {r}": partial(measure_materialising, r) for r in DEGREES},
}


def measure_size(keys: int) -> dict[str, Any]:
    """All rows for one size, and the peak memory of this process in MB."""
    loads = make_loads(keys)
    rows = [measure(loads)._asdict() for measure in ROWS.values()]
    return {"rows": rows, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


class Trajectories(NamedTuple):
    """Costs over many trajectories of the paper's workload: per plan against the bound, in all against Mixed."""

    to_bound: list[float]
    to_mixed: list[float]
    unsolved: int  # trajectories in which one of both found no plan


def follow_trajectories(fluctuation: float, theta: float, most_entries: int, count: int) -> Trajectories:
    """Let Knap and Mixed each follow its own assignment through the same fluctuations."""
    found = Trajectories([], [], 0)
    for seed in range(count):
        start = KeyWorkload.zipf(QUALITY_KEYS, NODES, SKEW, fluctuation, seed=seed)
        ours, ratios = _follow(start, "knap", theta, most_entries)
        theirs, _ = _follow(start, "mixed", theta, most_entries)
        if ours is None or theirs is None:
            found = found._replace(unsolved=found.unsolved + 1)
            continue
        found.to_bound.extend(ratios)
        found.to_mixed.append(ours / theirs if theirs else 1.0)
    return found


def _follow(
    workload: KeyWorkload, strategy: str, theta: float, most_entries: int
) -> tuple[float | None, Sequence[float]]:
    """Return the share of state that a trajectory moves in all, and each plan's cost in multiples of its bound."""
    current, moved, ratios = workload.home, 0.0, []
    for _ in range(INTERVALS):
        workload = workload.advance(current)
        problem = KeyProblem.of(workload.loads(current), NODES, theta, most_entries)
        try:
            destination = KEY_STRATEGIES[strategy](problem).destination
        except NotPlaced:
            return None, []
        if np.count_nonzero(destination != workload.home) > most_entries:
            return None, []
        cost = float(problem.loads.size[destination != current].sum())
        moved += cost / problem.loads.total_size
        if strategy == "knap" and (bound := lower_bound(problem)):
            ratios.append(cost / bound)
        current = destination
    return moved, ratios


def format_quality(count: int) -> str:
    rows = []
    for fluctuation, theta, most_entries in QUALITY:
        found = follow_trajectories(fluctuation, theta, most_entries, count)
        to_bound, to_mixed = np.array(found.to_bound), np.array(found.to_mixed)
        met = np.median(to_bound) <= TO_BOUND and np.median(to_mixed) <= 1
        rows.append(
            [
                f"{fluctuation:g}",
                f"{theta:g}",
                f"{most_entries:,}",
                f"{np.median(to_bound):.3f}",
                f"{np.quantile(to_bound, 0.9):.2f}",
                f"{np.median(to_mixed):.2f}",
                f"{np.quantile(to_mixed, 0.9):.2f}",
                f"{found.unsolved}",
                "yes" if met else "NO",
            ]
        )
    header = ["f", "theta", "entries", "of bound", "p90", "of mixed", "p90", "unsolved", f"at most {TO_BOUND} and 1"]
    return table(f"state that knap moves, {count} trajectories of {QUALITY_KEYS:,} keys", header, rows)


def measure_in_child(keys: int) -> tuple[list[Measure], float]:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "benchmarks.keys", "--keys", str(keys)], capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    return [Measure(**row) for row in answer["rows"]], float(answer["peak"])


def format_measure(measure: Measure) -> list[str]:
    if not measure.seconds:
        return [measure.name, "", "", "", "", "", "", "", "", measure.note]
    goal = GOALS.get((measure.name, measure.keys))
    met = "" if goal is None else f"{duration(goal)}: {'yes' if measure.seconds <= goal else 'NO'}"
    paper = PAPER.get(measure.keys, "") if measure.name == "mixed" else ""
    timing = [measure.name, duration(measure.seconds), duration(measure.p90), met, paper]
    if measure.name not in KEY_STRATEGIES:
        return [*timing, "", "", "", "", measure.note]
    cost = [f"{measure.moves:,}", f"{measure.entries:,}", f"{measure.cost_share:.2%}", f"{measure.ratio:.3g}"]
    return [*timing, *cost, measure.note]


def draw(path: Path, measures: list[Measure]) -> None:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for name in dict.fromkeys(measure.name for measure in measures):
        rows = [measure for measure in measures if measure.name == name and measure.seconds]
        left.loglog([row.keys for row in rows], [row.seconds * 1e3 for row in rows], "o-", label=name)
        costs = [row for row in rows if row.ratio]
        right.loglog([row.keys for row in costs], [row.ratio for row in costs], "o-", label=name)
    left.loglog([10**6, 10**6], [6e3, 6e2], "kx", label="paper 000: every key, compact")
    left.set(xlabel=f"keys ({NODES} nodes, Zipf {SKEW}, theta {DEFAULT_THETA})", ylabel="milliseconds per plan")
    right.axhline(1, color="black", linewidth=1)
    right.set(xlabel="keys", ylabel="state moved, times the lower bound")
    left.legend(fontsize="x-small")
    for axes in (left, right):
        axes.grid(visible=True, which="both", alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, help="measure this size only, and print JSON")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="leave out larger sizes")
    parser.add_argument("--trajectories", type=int, default=200, help="how many to compare knap and mixed on")
    asked = parser.parse_args()
    if asked.keys:
        print(json.dumps(measure_size(asked.keys)))
        return
    kernel = kernel_info()
    print(
        f"kernels: {kernel.name}; {NODES} nodes, Zipf {SKEW}, theta {DEFAULT_THETA}, one node carries {DRIFT:.0%} more"
    )
    header = ["strategy", "median", "p90", "goal", "paper", "moves", "entries", "cost", "of bound", "note"]
    everything: list[Measure] = []
    for keys in (size for size in SIZES if size <= asked.most):
        measures, peak = measure_in_child(keys)
        everything += measures
        title = f"{keys:,} keys; peak memory {peak:,.0f} MB, loads and plans of all strategies included"
        print(table(title, header, [format_measure(measure) for measure in measures]), flush=True)
    if asked.trajectories:
        print(format_quality(asked.trajectories), flush=True)
    target = RESULTS / "keys.png"
    draw(target, everything)
    print(f"\nchart: {target.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
