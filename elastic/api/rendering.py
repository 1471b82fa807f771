"""The engine's values as the documents that the API tells."""

import re
from collections.abc import Set
from dataclasses import asdict

import elastic.control as control
import migration as planning
from elastic.api import outputs
from elastic.api.port import ServedJob
from elastic.api.seen import SeenMigration
from elastic.runtime.status import JobStatus, NodeStatus, StepStatus


def job_summary(job: ServedJob) -> outputs.JobSummary:
    operators = [outputs.Operator(name=stage.name, key=list(stage.key)) for stage in job.pipeline.stages]
    return outputs.JobSummary(
        name=job.name,
        state=job.status().state,
        tasks=job.pipeline.tasks,
        nodes=len(job.assignment().nodes),
        operators=operators,
    )


def status(found: JobStatus) -> outputs.Status:
    """Without heavy keys: they are the user's data, and reading needs no token."""
    nodes = [_node(node) for node in sorted(found.nodes, key=lambda node: name_order(node.name))]
    recoveries = [outputs.Recovery.model_validate(dict(recovery)) for recovery in found.recoveries]
    made = ("nodes", "recoveries", "problems")
    plain = {name: getattr(found, name) for name in outputs.Status.model_fields if name not in made}
    return outputs.Status(nodes=nodes, recoveries=recoveries, problems=list(found.problems), **plain)


def name_order(name: str) -> list[tuple[int, str]]:
    """Sort key of a node's name that puts node-2 before node-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _node(node: NodeStatus) -> outputs.Node:
    known = asdict(node)
    known.pop("heavy_keys")
    return outputs.Node.model_validate(known)


def step(running: StepStatus | None) -> outputs.Step | None:
    return None if running is None else outputs.Step.model_validate(asdict(running))


def assignment(owned: planning.Ownership) -> outputs.Assignment:
    return outputs.Assignment.model_validate(owned.to_dict())


def load(measured: control.Load) -> outputs.Load:
    return outputs.Load(mean_utilisation=measured.mean_utilisation, **measured.to_dict())


def workload(measured: planning.Workload) -> outputs.Workload:
    return outputs.Workload.model_validate(measured.to_dict())


def plan(made: planning.Plan) -> outputs.Plan:
    return outputs.Plan.model_validate({**made.to_dict(), "joining": list(made.joining), "leaving": list(made.leaving)})


def migration(seen: SeenMigration) -> outputs.Migration:
    handle = seen.migration
    return outputs.Migration(
        number=seen.number,
        mode=handle.mode,
        transfer=handle.transfer,
        strategy=handle.plan.strategy,
        nodes_before=len(handle.plan.current.nodes),
        nodes_after=len(handle.plan.target.nodes),
        began_ms=seen.began_ms,
        ended_ms=seen.ended_ms,
        is_over=handle.is_over,
        is_paused=handle.run.is_paused and not handle.is_over,
        error=None if handle.error is None else str(handle.error),
        progress=outputs.Progress.model_validate(handle.progress()._asdict()),
        moves=_moves(handle),
    )


def _moves(handle: control.Migration) -> list[outputs.MovingTask]:
    """Moves of the plan, in the order of their tasks."""
    owners = handle.run.assignment.owners
    moving = _moving(handle)
    told = []
    for move in sorted(handle.plan.moves):
        if owners[move.task] == move.target:
            state = "moved"
        elif handle.is_over:
            state = "left out"
        else:
            state = "moving" if move.task in moving else "waiting"
        told.append(outputs.MovingTask(state=state, **move._asdict()))
    return told


def _moving(handle: control.Migration) -> Set[int]:
    """Tasks of the mini-migration under way."""
    return {task for hand_over in handle.run.under_way for task in hand_over.tasks}
