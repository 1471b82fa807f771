"""Figure 11 of paper 000: plans over compact records against the degree of discretisation."""

import time
from typing import Any, NamedTuple

import numpy as np

from elastic.experiments.paper000.lab import Lab, plan_once
from elastic.experiments.results import Rows, format_number, format_table
from elastic.experiments.streams import MILLISECOND
from migration.keys import KeyLoads
from migration.keys.compact import RecordPlan, encode_records, group_keys, materialise, plan_records
from migration.keys.compact.encoding import raw_bytes
from migration.keys.loads import Nodes

STRATEGY = "mixed"
PAPER_SECONDS = {None: 6.0, 3: 0.6}  # as the text of the paper gives them, by r


class CompactRow(NamedTuple):
    """Medians over intervals. `degree` is R = 2^r; None is the plan over all keys.

    `load_error_percent` is the largest difference between a node's actual load and that in the records, after the plan;
    `paper_load_error_percent` the same for records with representative values instead of means, as in the paper.
    """

    degree: int | None
    records: float | None
    plan_milliseconds: float
    materialise_milliseconds: float | None
    build_milliseconds: float | None
    load_error_percent: float | None
    paper_load_error_percent: float | None
    moved_percent: float
    report_bytes: float
    times_smaller: float
    paper_milliseconds: float | None


def measure(lab: Lab) -> list[CompactRow]:
    """On the same intervals for every degree: along the trajectory of the plans over all keys."""
    setting = lab.setting(keys=lab.scale.compact_keys)
    workload, current = setting.workload(1_000 * lab.seed), None
    found: dict[int | None, list[CompactRow]] = {}
    for interval in range(lab.scale.compact_intervals + 1):
        loads = workload.loads(current)
        sample, after = plan_once(loads, STRATEGY, setting, {})
        if interval:  # the first plan is from the hash alone
            lab.progress.step(f"interval {interval} of {lab.scale.compact_intervals}")
            raw = raw_bytes(loads.keys)
            found.setdefault(None, []).append(
                CompactRow(
                    None, None, sample.milliseconds, None, None, None, None, sample.moved_percent, raw, 1, _paper(None)
                )
            )
            for r in lab.scale.degrees:
                found.setdefault(r, []).append(_plan_compactly(lab, loads, r))
        current, workload = after, workload.advance(after)
    return [_median(rows) for rows in found.values()]


def _plan_compactly(lab: Lab, loads: KeyLoads, r: int) -> CompactRow:
    nodes = lab.scale.nodes
    began = time.perf_counter()
    keys = group_keys(loads, r)
    built = time.perf_counter()
    for _ in range(2):  # the first call may load compiled code
        planning = time.perf_counter()
        planned = plan_records(keys.records, nodes, lab.scale.theta, STRATEGY, lab.scale.most_entries, relax=True)
        planning = time.perf_counter() - planning
        materialising = time.perf_counter()
        destination: Nodes = materialise(planned.records, keys)
        materialising = time.perf_counter() - materialising
    literal_keys = group_keys(loads, r, use_means=False)
    literal = plan_records(literal_keys.records, nodes, lab.scale.theta, STRATEGY, lab.scale.most_entries, relax=True)
    report = len(encode_records(keys.records))
    return CompactRow(
        2**r,
        len(keys.records),
        planning / MILLISECOND,
        materialising / MILLISECOND,
        (built - began) / MILLISECOND,
        _load_error(loads, destination, planned),
        _load_error(loads, materialise(literal.records, literal_keys), literal),
        100 * float(loads.size[destination != loads.current].sum()) / loads.total_size,
        report,
        raw_bytes(loads.keys) / report,
        _paper(r),
    )


def _load_error(loads: KeyLoads, destination: Nodes, planned: RecordPlan) -> float:
    """The largest difference of a node's load to the planned one, in per cent."""
    actual = np.bincount(destination, loads.work, len(planned.loads_after))
    return 100 * float((np.abs(actual - planned.loads_after) / actual).max())


def _paper(r: int | None) -> float | None:
    return PAPER_SECONDS[r] / MILLISECOND if r in PAPER_SECONDS else None


def _median(rows: list[CompactRow]) -> CompactRow:
    medians: list[Any] = [None if column[0] is None else np.median(column).item() for column in zip(*rows, strict=True)]
    return CompactRow(*medians)


def format_rows(rows: Rows) -> str:
    header = ["R", "records", "plan, ms", "materialise, ms", "build, ms", "load error, %", "literal, %", "moved, %"]
    header += ["report, kB", "times smaller", "paper, ms"]
    lines = [
        [
            "all keys" if row.degree is None else f"{row.degree:g}",
            format_number(row.records, 0),
            format_number(row.plan_milliseconds),
            format_number(row.materialise_milliseconds),
            format_number(row.build_milliseconds, 0),
            format_number(row.load_error_percent, 4),
            format_number(row.paper_load_error_percent, 4),
            format_number(row.moved_percent),
            format_number(row.report_bytes / 1_000, 1),
            format_number(row.times_smaller, 0),
            format_number(row.paper_milliseconds, 0),
        ]
        for row in rows
    ]
    return format_table(header, lines)
