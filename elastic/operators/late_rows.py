"""Late rows as a side output: results of a stage of their own."""

from typing import Self

import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.operators.context import Context
from elastic.operators.operator import Operator, Yields
from elastic.operators.stages import Stage
from elastic.operators.stateless import StatelessOperator

LATE_ROWS = "late-rows"
RESULTS = "results"


class PassOn(StatelessOperator):
    """Emits its rows unchanged."""

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        bound = super().bind(key, input_schema)
        bound.output_schema = input_schema
        return bound

    def handle_rows(self, rows: pa.Table, _: Context) -> Yields:
        return rows


def with_late_rows(operator: Operator | Stage) -> tuple[Stage, Stage]:
    """Return two stages for an operator that emits late rows to the sink, as `over(..., late="sink")` does.

    The results of the first stage, "late-rows", are the late rows, unchanged. Those of the second, "results", are what
    the operator emits; a single sink gets these, `sink={"late-rows": ..., "results": ...}` both. Use it as the operator
    of a job, or at the end of a pipeline as `[..., *with_late_rows(operator)]`.
    """
    stage = operator if isinstance(operator, Stage) else Stage(operator)
    if getattr(stage.operator, "late", None) != "sink":
        raise InvalidJob("the operator emits no late rows to the sink. Write .over(..., late='sink').")
    first = Stage(stage.operator, stage.key, stage.name or LATE_ROWS, grouping=stage.grouping)
    return first, Stage(PassOn(), stage.key, RESULTS)
