"""Conversion of the engine's values into the API's responses."""

import re
from collections.abc import Set
from dataclasses import asdict

import elastic.control as control
import migration as planning
from elastic.api import outputs
from elastic.api.migrations import TrackedMigration
from elastic.api.served_job import ServedJob
from elastic.job.status import JobStatus, NodeStatus, StepStatus


def render_summary(job: ServedJob) -> outputs.JobSummary:
    operators = [outputs.Operator(name=stage.name, key=list(stage.key)) for stage in job.pipeline.stages]
    return outputs.JobSummary(
        name=job.name,
        state=job.status().state,
        tasks=job.pipeline.tasks,
        nodes=len(job.assignment().nodes),
        operators=operators,
    )


def render_status(status: JobStatus) -> outputs.Status:
    """Return the status without heavy keys: they are user data, and reads need no token."""
    nodes = [_render_node(node) for node in sorted(status.nodes, key=lambda node: node_sort_key(node.name))]
    recoveries = [outputs.Recovery.model_validate(dict(recovery)) for recovery in status.recoveries]
    converted = ("nodes", "recoveries", "problems")
    plain = {name: getattr(status, name) for name in outputs.Status.model_fields if name not in converted}
    return outputs.Status(nodes=nodes, recoveries=recoveries, problems=list(status.problems), **plain)


def node_sort_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts node-2 before node-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _render_node(node: NodeStatus) -> outputs.Node:
    fields = asdict(node)
    fields.pop("heavy_keys")
    return outputs.Node.model_validate(fields)


def render_step(step: StepStatus | None) -> outputs.Step | None:
    return None if step is None else outputs.Step.model_validate(asdict(step))


def render_assignment(assignment: planning.Ownership) -> outputs.Assignment:
    return outputs.Assignment.model_validate(assignment.to_dict())


def render_load(load: control.Load) -> outputs.Load:
    return outputs.Load(mean_utilisation=load.mean_utilisation, **load.to_dict())


def render_workload(workload: planning.Workload) -> outputs.Workload:
    return outputs.Workload.model_validate(workload.to_dict())


def render_plan(plan: planning.Plan) -> outputs.Plan:
    return outputs.Plan.model_validate({**plan.to_dict(), "joining": list(plan.joining), "leaving": list(plan.leaving)})


def render_migration(tracked: TrackedMigration) -> outputs.Migration:
    migration = tracked.migration
    return outputs.Migration(
        number=tracked.number,
        mode=migration.mode,
        transfer=migration.transfer,
        strategy=migration.plan.strategy,
        nodes_before=len(migration.plan.current.nodes),
        nodes_after=len(migration.plan.target.nodes),
        began_ms=tracked.began_ms,
        ended_ms=tracked.ended_ms,
        is_over=migration.is_over,
        is_paused=migration.is_paused and not migration.is_over,
        error=None if migration.error is None else str(migration.error),
        progress=outputs.Progress.model_validate(migration.progress()._asdict()),
        moves=_render_moves(migration),
    )


def _render_moves(migration: control.Migration) -> list[outputs.MigrationMove]:
    """Return the moves of the plan in the order of their tasks."""
    owners = migration.assignment.owners
    moving = _find_moving_tasks(migration)
    moves = []
    for move in sorted(migration.plan.moves):
        if owners[move.task] == move.target:
            state = "moved"
        elif migration.is_over:
            state = "skipped"
        else:
            state = "moving" if move.task in moving else "waiting"
        moves.append(outputs.MigrationMove(state=state, **move._asdict()))
    return moves


def _find_moving_tasks(migration: control.Migration) -> Set[int]:
    """Return the tasks of the current mini-migration."""
    return {task for hand_over in migration.view().in_flight for task in hand_over.tasks}
