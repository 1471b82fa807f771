"""A job's pipeline: as it is described in the store, and as the runners that execute it."""

from collections.abc import Sequence

import pyarrow as pa

from elastic.operators import Stage
from elastic.operators.graph import InputSpec, to_input_specs
from elastic.operators.protected_keys import hash_protected_keys
from elastic.operators.stage_runner import StageRunner
from elastic.operators.stages import build_runners, distinct_inputs
from elastic.results import Description, StageDescription
from elastic.routing import TableGrouping


def describe_pipeline(stages: Sequence[Stage], inputs: pa.Schema | Sequence[InputSpec], tasks: int) -> Description:
    """Return the stages and inputs with their schemas, as they travel to nodes and into the store.

    A schema stands for the only input.
    """
    specs = distinct_inputs(stages, to_input_specs(inputs))
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
            hash_protected_keys(stage, runner.input_schema),
            reads=stage.inputs,
            output_delay=stage.output_delay,
        )
        for stage, runner in zip(stages, build_runners(stages, specs), strict=True)
    )
    version = " ".join(f"{stage.name}={stage.operator.version}" for stage in stages)
    return Description(described, tasks, version, specs)


def create_runners(pipeline: Description, on_error: str) -> tuple[StageRunner, ...]:
    """Return one runner for each stage, in order."""
    stages = [
        Stage(
            stage.operator,
            stage.key,
            stage.name,
            grouping=stage.grouping,
            cost_key=stage.cost_key,
            inputs=stage.reads,
            output_delay=stage.output_delay,
        )
        for stage in pipeline.stages
    ]
    first_versions = [stage.first_version for stage in pipeline.stages]
    return build_runners(stages, pipeline.inputs, on_error, first_versions)  # type: ignore[arg-type]


def find_emitting_stages(stages: Sequence[StageRunner]) -> list[bool]:
    """Return for each stage whether its rows may cause another round."""
    return [stage.emits_rows_to_stages for stage in stages]


def count_standbys(pipeline: Description, default: int) -> list[int]:
    """Return for each stage how many standbys its units have; a stateless operator has nothing to take over."""
    return [
        0 if stage.operator.stateless else default if stage.standbys is None else stage.standbys
        for stage in pipeline.stages
    ]


def select_stateless_stages(pipeline: Description) -> tuple[int, ...]:
    """Return the stages whose operators keep no state."""
    return tuple(number for number, stage in enumerate(pipeline.stages) if stage.operator.stateless)


def count_guest_standbys(pipeline: Description, default: int) -> list[int]:
    """Return for each stage how many standbys its guests have: one at least where keys are protected."""
    counts = count_standbys(pipeline, default)
    return [max(1, count) if stage.protected else count for stage, count in zip(pipeline.stages, counts, strict=True)]


def select_counted_stages(pipeline: Description, which: str) -> tuple[int, ...]:
    """Return the stages whose keys are counted, as the setting `key_statistics` says."""
    if which == "off":
        return ()
    stages = enumerate(pipeline.stages)
    return tuple(number for number, stage in stages if which == "all" or stage.grouping == TableGrouping.kind)
