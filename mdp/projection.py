"""`project`: count partitions, choose an exact or approximate projection, and say why."""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mdp import quality
from mdp.approximate import train
from mdp.array_store import ArrayStore, MemoryArrayStore, ObjectArrayStore
from mdp.errors import InvalidProjection
from mdp.exact import DEFAULT_ERROR, project_exactly
from mdp.matrix import TransitionMatrix
from mdp.process import DEFAULT_GAMMA, DEFAULT_TAU, DecisionProcess
from mdp.progress import Notice, SweepProgress, TrainingProgress, ignore_progress
from mdp.table.contents import AdditiveContents, ExactContents
from mdp.table.table import ValueTable
from mdp.workers import LocalWorkers, Workers
from migration import Workload
from storage import Secret

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METHODS = ("auto", "exact", "approximate")
MOST_PARTITIONS = 6_000_000  # exact beyond that takes more than some minutes on two cores
_MAX_TASKS_WITH_INTERVALS = 128  # beyond, interval terms cost more time than they save state


Report = Callable[[Notice | SweepProgress | TrainingProgress], None]


class CheckpointLocation(NamedTuple):
    """Where workers keep intermediate results in a store, and where a killed projection resumes."""

    store: str
    name: str
    secret: Secret
    settings: Mapping[str, Any] = {}


def project(
    workload: Workload,
    matrix: TransitionMatrix,
    tau: float = DEFAULT_TAU,
    gamma: float = DEFAULT_GAMMA,
    *,
    method: str = "auto",
    error: float = DEFAULT_ERROR,
    most_partitions: int = MOST_PARTITIONS,
    relax: bool = False,
    seed: int = 0,
    spark: "SparkSession | None" = None,
    checkpoint: CheckpointLocation | None = None,
    resume: bool = False,
    report: Report = ignore_progress,
) -> ValueTable:
    """Project the migration cost of every balanced partition, or an approximation if there are too many.

    "auto" counts first: up to `most_partitions` the values are exact, none off by more than `error` times all state;
    beyond, an additive value is trained and its quality measured on a reduced instance. With `spark` the executors
    compute; they need a `checkpoint` in a store that all of them reach, unless the master is local. With `resume` an
    exact projection continues from that checkpoint.
    """
    if method not in METHODS:
        raise InvalidProjection(f"method is {method!r}. Use one of {', '.join(METHODS)}.")
    began = time.monotonic()
    process = DecisionProcess(workload, matrix, tau, gamma, relax)
    counts = process.partitions()
    chosen, why = _choose_method(method, sum(counts.values()), most_partitions)
    report(Notice(f"{chosen}: {why}"))
    workers = _workers(spark)
    if chosen == "exact":
        with _open_array_store(spark, checkpoint) as array_store:
            table = _exact(process, error, workers, array_store, resume=resume, seed=seed, report=report)
    else:
        table = _approximate(process, workers, seed, report)
    facts = {
        **table.facts,
        "why": why,
        "partitions": {str(nodes): str(count) for nodes, count in counts.items()},
        "seconds": time.monotonic() - began,
    }
    return ValueTable(process, table.contents, facts)


def _choose_method(method: str, count: int, most: int) -> tuple[str, str]:
    number = f"{count:,}" if count < 10**12 else f"about 10^{len(str(count)) - 1}"
    if method != "auto":
        return method, f"requested, with {number} balanced partitions"
    if count <= most:
        return "exact", f"{number} balanced partitions, at most {most:,}"
    return "approximate", f"{number} balanced partitions, more than {most:,}"


def _exact(
    process: DecisionProcess,
    error: float,
    workers: Workers,
    array_store: ArrayStore,
    *,
    resume: bool,
    seed: int,
    report: Report,
) -> ValueTable:
    start = train(process, rounds=2, sequences=8, seed=seed)
    found = project_exactly(
        process,
        error=error,
        start=start.starting_terms(),
        workers=workers,
        array_store=array_store,
        resume=resume,
        progress=report,
    )
    return ValueTable(process, ExactContents.of(found), {"error": found.relative_error, "sweeps": found.sweeps})


def _approximate(process: DecisionProcess, workers: Workers, seed: int, report: Report) -> ValueTable:
    terms = "both" if process.tasks <= _MAX_TASKS_WITH_INTERVALS else "boundary"
    projection = train(process, terms=terms, seed=seed, workers=workers, progress=report)
    found = quality.measure_quality(process, seed=seed)
    report(
        Notice(
            f"on a reduced instance of {found.tasks} tasks it saves {found.captured_share:.0%} of what exact values "
            f"save over ssm; here it moves {projection.gain_over_ssm:.1%} less than ssm"
        )
    )
    facts = {"terms": terms, "gain_over_ssm": projection.gain_over_ssm, "quality": found.to_dict()}
    return ValueTable(process, AdditiveContents(projection), facts)


def _workers(spark: "SparkSession | None") -> Workers:
    if spark is None:
        return LocalWorkers()
    from mdp.spark.workers import SparkWorkers

    return SparkWorkers(spark)


@contextmanager
def _open_array_store(spark: "SparkSession | None", checkpoint: CheckpointLocation | None) -> Iterator[ArrayStore]:
    if checkpoint is not None:
        yield ObjectArrayStore(
            checkpoint.store, f"projections/{checkpoint.name}", checkpoint.secret, checkpoint.settings
        )
    elif spark is None:
        yield MemoryArrayStore()
    elif (spark.sparkContext.master or "").startswith("local"):
        with tempfile.TemporaryDirectory(prefix="projection-") as folder:
            yield ObjectArrayStore(Path(folder).as_uri(), "projection", Secret.of(secrets.token_hex()))
    else:
        raise InvalidProjection(
            f"executors of {spark.sparkContext.master} cannot read the memory of the driver. "
            "Pass checkpoint=, a location in a store."
        )
