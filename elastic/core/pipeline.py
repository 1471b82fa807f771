"""A job's pipeline: as it is described in the store, and as the runners that execute it."""

from collections.abc import Sequence

import pyarrow as pa

from elastic.operators import Stage
from elastic.operators.stage_runner import StageRunner
from elastic.operators.stages import build_runners
from elastic.results import Description, StageDescription
from elastic.routing import TableGrouping


def describe_pipeline(stages: Sequence[Stage], input_schema: pa.Schema, tasks: int) -> Description:
    """Return the stages with their schemas, as they travel to nodes and into the store."""
    described = tuple(
        StageDescription(
            stage.name,
            stage.key,
            stage.operator,
            runner.input_schema,
            runner.output_schema,
            stage.grouping,
            stage.cost_key,
            stage.standbys,
        )
        for stage, runner in zip(stages, build_runners(stages, input_schema), strict=True)
    )
    version = " ".join(f"{stage.name}={stage.operator.version}" for stage in stages)
    return Description(described, tasks, version)


def runners(pipeline: Description, on_error: str) -> tuple[StageRunner, ...]:
    """Return one runner for each stage, in order."""
    stages = [
        Stage(stage.operator, stage.key, stage.name, grouping=stage.grouping, cost_key=stage.cost_key)
        for stage in pipeline.stages
    ]
    return build_runners(stages, pipeline.stages[0].input_schema, on_error)  # type: ignore[arg-type]


def emitting(stages: Sequence[StageRunner]) -> list[bool]:
    """Return for each stage whether its rows may cause another round."""
    return [stage.emits_rows_to_stages for stage in stages]


def count_standbys(pipeline: Description, default: int) -> list[int]:
    """Return for each stage how many standbys its units have; a stateless operator has nothing to take over."""
    return [
        0 if stage.operator.stateless else default if stage.standbys is None else stage.standbys
        for stage in pipeline.stages
    ]


def select_counted_stages(pipeline: Description, which: str) -> tuple[int, ...]:
    """Return the stages whose keys are counted, as the setting `key_statistics` says."""
    if which == "off":
        return ()
    stages = enumerate(pipeline.stages)
    return tuple(number for number, stage in stages if which == "all" or stage.grouping == TableGrouping.kind)
