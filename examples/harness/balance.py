"""Changes of a running job: rebalances at every interval, and requests for more or fewer nodes."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import click
import numpy as np
import pyarrow as pa

import elastic
from elastic.errors import KeysNotMeasured
from elastic.routing import Routing, hash_keys
from elastic.routing.groupings import TableGrouping
from storage.state import UnitId

LEVELS = ("none", "tasks", "keys", "auto")


def rebalance(job: elastic.Job, level: str, theta: float, stages: Sequence[str] = (), **options: Any) -> bool:
    """Balance a job; return whether anything was requested.

    Nothing is while a migration is under way, before the nodes have measured their keys, and for the level "none".
    `theta` is the overload of a node that is allowed, `stages` are those whose keys may move, by default the only one
    that is grouped by table, and `options` are others of `job.rebalance`.
    """
    if level == "none" or (job.migration is not None and not job.migration.is_over):
        return False
    try:
        if level == "tasks":
            job.rebalance(level=level, tau=theta, **options)
            return True
        for stage in stages or (None,):
            job.rebalance(level=level, theta=theta, stage=stage, queue=True, **options)
    except KeysNotMeasured:
        return False
    return True


def choose_measuring_settings(interval_seconds: float) -> dict[str, float]:
    """Return the settings of a job whose keys are rebalanced that often.

    Keys are measured twice in every interval, so that a rebalance knows what the newest half of it was like.
    """
    return {"heartbeat_seconds": min(0.5, interval_seconds / 5), "key_interval_seconds": interval_seconds / 2}


def count_entries(routing: Routing) -> int:
    """Return the number of entries in the key tables of all stages."""
    by_stage = routing.groupings.by_stage
    return sum(len(grouping.table) for grouping in by_stage if isinstance(grouping, TableGrouping))


class ScaleStep(NamedTuple):
    """Scale to `nodes` nodes, `seconds` after the start."""

    nodes: int
    seconds: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a step such as `6@10`."""
        found = re.fullmatch(r"(\d+)@(\d+(?:\.\d+)?)", text)
        if found is None or int(found[1]) < 1:
            raise ValueError(f"expected NODES@SECONDS, such as 6@10, got {text!r}")
        return cls(int(found[1]), float(found[2]))


class ScaleStepType(click.ParamType[ScaleStep]):
    """A `ScaleStep` on the command line."""

    name = "nodes@seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ScaleStep:
        try:
            return value if isinstance(value, ScaleStep) else ScaleStep.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def measure_imbalance(routing: Routing, keys: pa.ChunkedArray, stage: int = 0) -> float:
    """Return the rows of the node with most of them, divided by the mean: max L(d) / mean L in paper 000."""
    units, counts = np.unique(routing.unit_numbers(hash_keys([keys]), stage), return_counts=True)
    rows = dict.fromkeys(routing.assignment.nodes, 0)
    for unit, count in zip(units.tolist(), counts.tolist(), strict=True):
        for node in routing.owners(UnitId.from_number(unit)):
            rows[node] += count
    return max(rows.values()) * len(rows) / len(keys)
