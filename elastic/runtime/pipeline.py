"""The stages of a job as what runs them."""

from collections.abc import Sequence

from elastic.operators import Stage
from elastic.operators.execution import StageRunner
from elastic.operators.stages import runners_of
from elastic.results import Description


def runners(pipeline: Description, on_error: str) -> tuple[StageRunner, ...]:
    """One runner for each stage, in order."""
    stages = [Stage(stage.operator, stage.key, stage.name) for stage in pipeline.stages]
    return runners_of(stages, pipeline.stages[0].input_schema, on_error)  # type: ignore[arg-type]


def emitting(stages: Sequence[StageRunner]) -> list[bool]:
    """Of each stage, whether its rows may cause another round."""
    return [stage.emits_rows_to_stages for stage in stages]
