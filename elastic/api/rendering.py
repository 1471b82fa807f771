"""Conversion of the engine's values into the API's responses."""

import re
from collections.abc import Sequence, Set
from dataclasses import asdict

import elastic.control as control
import migration as planning
from elastic.api import outputs
from elastic.api.migrations import TrackedMigration
from elastic.api.problems import Problem
from elastic.api.served_job import ServedJob
from elastic.job.keys import KeyStatus, KeyTableStatus
from elastic.job.status import JobStatus, NodeStatus, StepStatus
from elastic.operators.graph import JobGraph
from elastic.operators.graph.drawing import place

_MAX_KEY_MOVES = 100


def render_summary(job: ServedJob) -> outputs.JobSummary:
    operators = [
        outputs.Operator(name=stage.name, key=list(stage.grouped_by), grouping=stage.grouping)
        for stage in job.pipeline.stages
    ]
    return outputs.JobSummary(
        name=job.name,
        state=job.status().state,
        tasks=job.pipeline.tasks,
        nodes=len(job.assignment().nodes),
        operators=operators,
        graph=_render_graph(job.graph()),
    )


def _render_graph(graph: JobGraph) -> outputs.Graph:
    nodes, edges = place(graph)
    return outputs.Graph(nodes=[outputs.GraphNode.model_validate(node._asdict()) for node in nodes], edges=edges)


def render_status(status: JobStatus) -> outputs.Status:
    nodes = [_render_node(node) for node in sorted(status.nodes, key=lambda node: node_sort_key(node.name))]
    recoveries = [outputs.Recovery.model_validate(dict(recovery)) for recovery in status.recoveries]
    converted = ("nodes", "recoveries", "problems")
    plain = {name: getattr(status, name) for name in outputs.Status.model_fields if name not in converted}
    return outputs.Status(nodes=nodes, recoveries=recoveries, problems=list(status.problems), **plain)


def node_sort_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts node-2 before node-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _render_node(node: NodeStatus) -> outputs.Node:
    return outputs.Node.model_validate(asdict(node))


def render_step(step: StepStatus | None) -> outputs.Step | None:
    return None if step is None else outputs.Step.model_validate(asdict(step))


def render_assignment(assignment: planning.Ownership) -> outputs.Assignment:
    return outputs.Assignment.model_validate(assignment.to_dict())


def render_load(load: control.Load) -> outputs.Load:
    return outputs.Load(mean_utilisation=load.mean_utilisation, **load.to_dict())


def render_workload(workload: planning.Workload) -> outputs.Workload:
    return outputs.Workload.model_validate(workload.to_dict())


def render_key_plan(plan: planning.KeyPlan) -> outputs.KeyPlan:
    fields = {name: getattr(plan, name) for name in outputs.KeyPlan.model_fields if name not in ("moves", "entries")}
    return outputs.KeyPlan(moves=len(plan.moves), entries=len(plan.entries), **fields)


def render_keys(keys: Sequence[KeyStatus], *, with_names: bool) -> outputs.Keys:
    """Return keys, without their names unless the caller may see user data."""
    rendered = []
    for key in keys:
        fields = {**key.to_json(), "hash": str(key.hash), "name": key.name if with_names else None}
        rendered.append(outputs.Key.model_validate(fields))
    return outputs.Keys(keys=rendered)


def render_key_table(table: KeyTableStatus) -> outputs.KeyTable:
    guests = [outputs.TaskGuests(task=task, keys=keys) for task, keys in table.guests.items()]
    most_entries = control.KeyRequest.most_entries
    return outputs.KeyTable(stage=table.stage, entries=table.entries, most_entries=most_entries, guests=guests)


def render_levels(plans: control.LevelPlans) -> outputs.Balance:
    return outputs.Balance(
        level=plans.level,
        reason=plans.reason,
        theta=plans.theta,
        tasks=outputs.TaskLevel(
            plan=None if plans.tasks is None else render_plan(plans.tasks),
            problem=None if plans.no_tasks is None else Problem.from_error(plans.no_tasks),
            overload=None if plans.tasks is None else max(0.0, plans.overload("tasks")),
        ),
        keys=outputs.KeyLevel(
            plan=None if plans.keys is None else render_key_plan(plans.keys),
            problem=None if plans.no_keys is None else Problem.from_error(plans.no_keys),
            overload=None if plans.keys is None else max(0.0, plans.overload("keys")),
        ),
    )


def render_plan(plan: planning.Plan) -> outputs.Plan:
    has_standbys = plan.standbys is not None
    return outputs.Plan.model_validate(
        {
            **plan.to_dict(),
            "joining": list(plan.joining),
            "leaving": list(plan.leaving),
            "switches": len(plan.switches) if has_standbys else None,
            "background_cost": plan.background_cost if has_standbys else None,
        }
    )


def render_migration(tracked: TrackedMigration) -> outputs.Migration:
    migration = tracked.migration
    return outputs.Migration(
        number=tracked.number,
        mode=migration.mode,
        transfer=migration.transfer,
        strategy=migration.plan.strategy,
        level=migration.level,
        nodes_before=migration.nodes[0],
        nodes_after=migration.nodes[1],
        began_ms=tracked.began_ms,
        ended_ms=tracked.ended_ms,
        is_over=migration.is_over,
        is_paused=migration.is_paused and not migration.is_over,
        error=None if migration.error is None else str(migration.error),
        progress=outputs.Progress.model_validate(migration.progress()._asdict()),
        moves=_render_moves(migration) if isinstance(migration, control.TaskMigration) else [],
        key_moves=_render_key_moves(migration) if isinstance(migration, control.KeyMigration) else [],
    )


def _render_key_moves(migration: control.KeyMigration) -> list[outputs.KeyMove]:
    """Return the largest moves of the plan; there may be thousands."""
    largest = sorted(migration.plan.moves, key=lambda move: -move.size)[:_MAX_KEY_MOVES]
    return [
        outputs.KeyMove(hash=str(move.hash), source=move.source, target=move.target, size=move.size) for move in largest
    ]


def _render_moves(migration: control.TaskMigration) -> list[outputs.MigrationMove]:
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


def _find_moving_tasks(migration: control.TaskMigration) -> Set[int]:
    """Return the tasks of the current mini-migration."""
    return {task for hand_over in migration.view().in_flight for task in hand_over.tasks}
