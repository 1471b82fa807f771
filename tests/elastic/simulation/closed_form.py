"""What a pipeline with split keys must emit, computed from rows and clocks alone, without operators or routing."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from elastic.operators.partial import PartialOperator
from elastic.results import Description
from tests.elastic.simulation.operators import Relay
from tests.elastic.simulation.oracle import Batch, Committed, line_of, rows_by_input

_TELL: dict[str, Callable[[int, int, int], dict[str, int]]] = {
    "CountByKey": lambda key, rows, _: {"key": key, "count": rows},
    "Totals": lambda key, rows, total: {"key": key, "rows": rows, "total": total},
}


class _Row(NamedTuple):
    key: int
    value: int


def totals_of(pipeline: Description, committed: Committed, source: list[Batch]) -> Counter[str] | None:
    """Return the results of the operator behind a partial stage; None if the pipeline has no such stage.

    Rows of an interval reach the operator in the first batch of a later one, all at once.
    """
    stage = next((number for number, one in enumerate(pipeline.stages) if one.is_partial), None)
    if stage is None:
        return None
    operator: PartialOperator = pipeline.stages[stage].operator
    is_relayed = isinstance(pipeline.stages[0].operator, Relay)
    name, tell = pipeline.stages[stage + 1].name, _TELL[type(operator.operator).__name__]
    known: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    held: list[_Row] = []
    held_interval = 0
    lines: Counter[str] = Counter()
    for batch, (number, time) in enumerate(zip(committed.sources, committed.times, strict=True)):
        rows = (
            [] if number is None else [_read(row, is_relayed) for table in source[number] for row in table.to_pylist()]
        )
        if operator.every_ms is None:
            arriving = rows
        else:
            interval = time.timestamp_ms // operator.every_ms
            arriving, held = ([], held + rows) if interval == held_interval else (held, rows)
            held_interval = interval
        for row in arriving:
            known[row.key][0] += 1
            known[row.key][1] += row.value
        lines.update(line_of(name, batch, tell(key, *known[key])) for key in {row.key for row in arriving})
    return lines


def count_keys(pipeline: Description, source: list[Batch]) -> Counter[int]:
    """Return how many rows of each key the partial stage gets in all."""
    is_relayed = isinstance(pipeline.stages[0].operator, Relay)
    rows = (row for partitions in source for table in partitions for row in table.to_pylist())
    return Counter(_read(row, is_relayed).key for row in rows)


def closed_forms_of(pipeline: Description, committed: Committed, source: list[Batch]) -> dict[str, Counter[str]]:
    """Return by name what stages must emit, of those for which rows and clocks alone tell it."""
    batches = [[] if number is None else source[number] for number in committed.sources]
    names = {stage.name for stage in pipeline.stages}
    lines = {}
    if "deep" in names:
        lines["deep"] = _windows_deep(committed, batches, pipeline)
    if "joined" in names:
        lines["joined"] = _joined(committed, batches, pipeline)
    return lines


def _windows_deep(committed: Committed, batches: list[Batch], pipeline: Description) -> Counter[str]:
    """Sums of windows of four seconds, of all rows that are not late in windows of one.

    Results of windows have times up to the size of the window behind their stage, which the stages behind wait for: the
    third stage sees the watermark of the batch before, less one and two seconds.
    """
    sums: dict[tuple[int, int], int] = defaultdict(int)
    for partitions, time in zip(batches, committed.times, strict=True):
        for row in (row for rows in partitions for row in rows.to_pylist()):
            if time.watermark_ms is None or row["at"] // 1_000 * 1_000 + 1_000 > time.watermark_ms:
                sums[row["key"], row["at"] // 4_000 * 4_000] += row["value"]
    assert [stage.name for stage in pipeline.stages][-1] == "deep"
    reached = [None, *(time.watermark_ms for time in committed.times[:-1])]
    clocks = [None if watermark is None else watermark - 3_000 for watermark in reached]
    lines: Counter[str] = Counter()
    for (key, start), total in sums.items():
        batch = next((n for n, clock in enumerate(clocks) if clock is not None and clock >= start + 4_000), None)
        if batch is not None:
            window = {"start": start, "end": start + 4_000}
            lines[line_of("deep", batch, {"key": key, "window": window, "value": total})] += 1
    return lines


def _joined(committed: Committed, batches: list[Batch], pipeline: Description) -> Counter[str]:
    """Every pair of rows that are not late, in the batch of the later one."""
    kept: dict[str, list[tuple[int, dict[str, int]]]] = {"a": [], "b": []}
    for batch, (partitions, time) in enumerate(zip(batches, committed.times, strict=True)):
        for name, tables in rows_by_input(partitions, pipeline.inputs).items():
            for row in (row for rows in tables for row in rows.to_pylist()):
                if time.watermark_ms is None or row["at"] > time.watermark_ms:
                    kept[name].append((batch, row))
    lines: Counter[str] = Counter()
    for of_a, a in kept["a"]:
        for of_b, b in kept["b"]:
            if a["key"] == b["key"] and -400 <= b["at"] - a["at"] <= 900:
                row = {"key": a["key"], "a": a["value"], "a_at": a["at"], "b": b["value"], "b_at": b["at"]}
                lines[line_of("joined", max(of_a, of_b), row)] += 1
    return lines


def _read(row: dict[str, Any], is_relayed: bool) -> _Row:
    return _Row(row["key"] + row["value"] * is_relayed, row["value"])
