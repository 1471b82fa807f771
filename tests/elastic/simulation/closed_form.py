"""What a pipeline with split keys must emit, computed from rows and clocks alone, without operators or routing."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from elastic.operators.partial import PartialOperator
from elastic.results import Description
from tests.elastic.simulation.operators import Relay
from tests.elastic.simulation.oracle import Batch, Committed, line_of

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


def _read(row: dict[str, Any], is_relayed: bool) -> _Row:
    return _Row(row["key"] + row["value"] * is_relayed, row["value"])
