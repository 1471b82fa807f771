"""The front door of projections: count partitions, choose exact or approximate, and say why."""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mdp import quality
from mdp.approximate import train
from mdp.approximate.training import Progress as TrainingProgress
from mdp.errors import InvalidProjection
from mdp.exact import DEFAULT_ERROR, Progress, project_exactly
from mdp.matrix import TransitionMatrix
from mdp.process import DEFAULT_GAMMA, DEFAULT_TAU, DecisionProcess
from mdp.shelf import MemoryShelf, Shelf, StoreShelf
from mdp.table.contents import AdditiveContents, ExactContents
from mdp.table.table import ValueTable
from mdp.workers import Here, Workers
from migration import Workload
from storage import Secret

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METHODS = ("auto", "exact", "approximate")
MOST_PARTITIONS = 6_000_000  # exact beyond that takes more than some minutes on two cores
_MOST_TASKS_WITH_INTERVALS = 128  # beyond, interval terms cost more time than they save state


class Notice(NamedTuple):
    """Something worth a line: what was chosen, and why."""

    text: str


Report = Callable[[Notice | Progress | TrainingProgress], None]


def silent(_report: object) -> None:
    """For whoever does not look."""


class Place(NamedTuple):
    """Where workers lay down what they have, and where a projection that was killed goes on."""

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
    place: Place | None = None,
    resume: bool = False,
    report: Report = silent,
) -> ValueTable:
    """The projected migration cost of every balanced partition, or an approximation where there are too many.

    "auto" counts first: up to `most_partitions` values are exact, none further from the true one than `error` times all
    state; beyond, an additive value is trained and its quality measured on a reduced instance. With `spark` its
    executors compute; they need a `place` in a store that all of them reach, unless the master is local. With `resume`
    an exact projection goes on where the last one at that place was killed.
    """
    if method not in METHODS:
        raise InvalidProjection(f"method is {method!r}. Use one of {', '.join(METHODS)}.")
    began = time.monotonic()
    process = DecisionProcess(workload, matrix, tau, gamma, relax)
    counts = process.partitions()
    chosen, why = _chosen(method, sum(counts.values()), most_partitions)
    report(Notice(f"{chosen}: {why}"))
    workers = _workers(spark)
    if chosen == "exact":
        with _shelf(spark, place) as shelf:
            table = _exact(process, error, workers, shelf, resume=resume, seed=seed, report=report)
    else:
        table = _approximate(process, workers, seed, report)
    facts = {
        **table.facts,
        "why": why,
        "partitions": {str(nodes): str(count) for nodes, count in counts.items()},
        "seconds": time.monotonic() - began,
    }
    return ValueTable(process, table.contents, facts)


def _chosen(method: str, count: int, most: int) -> tuple[str, str]:
    number = f"{count:,}" if count < 10**12 else f"about 10^{len(str(count)) - 1}"
    if method != "auto":
        return method, f"asked for, with {number} balanced partitions"
    if count <= most:
        return "exact", f"{number} balanced partitions, at most {most:,}"
    return "approximate", f"{number} balanced partitions, more than {most:,}"


def _exact(
    process: DecisionProcess, error: float, workers: Workers, shelf: Shelf, *, resume: bool, seed: int, report: Report
) -> ValueTable:
    start = train(process, rounds=2, sequences=8, seed=seed)
    found = project_exactly(
        process,
        error=error,
        start=start.starting_terms(),
        workers=workers,
        shelf=shelf,
        resume=resume,
        progress=report,
    )
    return ValueTable(process, ExactContents.of(found), {"error": found.relative_error, "sweeps": found.sweeps})


def _approximate(process: DecisionProcess, workers: Workers, seed: int, report: Report) -> ValueTable:
    terms = "both" if process.tasks <= _MOST_TASKS_WITH_INTERVALS else "boundary"
    projection = train(process, terms=terms, seed=seed, workers=workers, progress=report)
    found = quality.measured(process, seed=seed)
    report(
        Notice(
            f"on a reduced instance of {found.tasks} tasks it saves {found.captured:.0%} of what exact values save "
            f"over ssm; here it moves {projection.gain_over_ssm:.1%} less than ssm"
        )
    )
    facts = {"terms": terms, "gain_over_ssm": projection.gain_over_ssm, "quality": found.to_dict()}
    return ValueTable(process, AdditiveContents(projection), facts)


def _workers(spark: "SparkSession | None") -> Workers:
    if spark is None:
        return Here()
    from mdp.spark.workers import OnSpark

    return OnSpark(spark)


@contextmanager
def _shelf(spark: "SparkSession | None", place: Place | None) -> Iterator[Shelf]:
    if place is not None:
        yield StoreShelf(place.store, f"projections/{place.name}", place.secret, place.settings)
    elif spark is None:
        yield MemoryShelf()
    elif (spark.sparkContext.master or "").startswith("local"):
        with tempfile.TemporaryDirectory(prefix="projection-") as folder:
            yield StoreShelf(Path(folder).as_uri(), "projection", Secret.of(secrets.token_hex()))
    else:
        raise InvalidProjection(
            f"executors of {spark.sparkContext.master} cannot see this driver's memory. Name a place in a store."
        )
