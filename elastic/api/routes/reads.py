"""Routes that only read. They need no token, and show no user data without it."""

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from elastic.api import outputs, rendering
from elastic.api.guard import is_authorized
from elastic.api.inputs import BalanceQuery, PlanQuery
from elastic.api.metrics import format_metrics
from elastic.api.problems import Problem, describe
from elastic.api.registry import MigrationNumber, Registry, WatchedJob
from elastic.api.watcher import Watcher
from elastic.control import TaskMigration
from mdp.errors import MdpError
from migration.errors import MigrationError

_MAX_RECORDS = 200
_MAX_LINES = 1_000
_MAX_KEYS = 1_000

router = APIRouter(tags=["read"])
_job_problems = describe(404, 422, 503)


@router.get("/health", responses={503: {"model": outputs.Health}})
async def health(registry: Registry, response: Response) -> outputs.Health:
    """Health of all jobs: 503 if one has failed or does not respond.

    A job that runs with an overdue step, a failed sink or a node that cannot start is degraded. The status is 200 then,
    so that a supervisor does not restart it.
    """
    # Not in the thread pool: requests that wait for the store or for a plan must not block a health check.
    jobs = {watcher.job.name: await _check_health(watcher) for watcher in registry.watchers}
    states = {state for state, _ in jobs.values()}
    failing = not states.isdisjoint(("failed", "unknown"))
    response.status_code = 503 if failing else 200
    return outputs.Health(
        status="failing" if failing else "degraded" if "degraded" in states else "ok",
        jobs={job: state for job, (state, _) in jobs.items()},
        problems={job: problems for job, (_, problems) in jobs.items() if problems},
    )


async def _check_health(watcher: Watcher) -> tuple[str, list[str]]:
    """Return the state of a job and its problems."""
    snapshot = watcher.newest
    if snapshot is None:
        snapshot = await asyncio.to_thread(watcher.snapshot)  # not one of the threads that requests wait in
    if watcher.is_stale:
        return "unknown", []
    return ("degraded" if snapshot.problems else snapshot.state), snapshot.problems


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}, "application/openmetrics-text": {}}}},
)
def metrics(registry: Registry, request: Request) -> Response:
    """Metrics of all jobs for Prometheus, in its text format or as OpenMetrics, whichever the client accepts."""
    accept = request.headers.get("accept", "")
    text, content_type = format_metrics(registry.watchers, registry.response_times, accept)
    return Response(text, headers={"Content-Type": content_type})


@router.get("/jobs")
def jobs(registry: Registry) -> list[outputs.JobSummary]:
    """The jobs of this server, with their operators."""
    return [rendering.render_summary(watcher.job) for watcher in registry.watchers]


@router.get("/jobs/{job}", responses=_job_problems)
def job_summary(watched: WatchedJob) -> outputs.JobSummary:
    """One job, with its operators."""
    return rendering.render_summary(watched.job)


@router.get("/jobs/{job}/status", responses=_job_problems)
def status(watched: WatchedJob) -> outputs.Status:
    """Nodes, batches, rows, losses and recoveries."""
    return rendering.render_status(watched.job.status())


@router.get("/jobs/{job}/assignment", responses=_job_problems)
def assignment(watched: WatchedJob) -> outputs.Assignment:
    """Which node owns which tasks."""
    return rendering.render_assignment(watched.job.assignment())


@router.get("/jobs/{job}/load", responses=_job_problems)
def load(
    watched: WatchedJob,
    seconds: Annotated[float, Query(gt=0, le=60, allow_inf_nan=False, description="Length of the window.")] = 60.0,
) -> outputs.Load:
    """Utilisation of nodes and pending work over the last seconds."""
    return rendering.render_load(watched.job.load(seconds))


@router.get("/jobs/{job}/workload", responses=_job_problems)
def workload(watched: WatchedJob) -> outputs.Workload:
    """Work and state size of every task."""
    return rendering.render_workload(watched.job.workload())


@router.get("/jobs/{job}/keys", responses=_job_problems)
def keys(
    watched: WatchedJob,
    request: Request,
    top: Annotated[int, Query(ge=1, le=_MAX_KEYS, description="Maximum number of keys.")] = 20,
    stage: Annotated[str | None, Query(description="Name of a stage; by default all whose keys are counted.")] = None,
) -> outputs.Keys:
    """The heaviest keys of the last interval, by hash; a request with the token gets their names too."""
    return rendering.render_keys(watched.job.keys(top, stage), with_names=is_authorized(request))


@router.get("/jobs/{job}/plan", responses=_job_problems)
def plan(watched: WatchedJob, query: Annotated[PlanQuery, Query()]) -> outputs.Comparison:
    """Dry run: the plan of each strategy, side by side."""
    return outputs.Comparison(plans=[_plan_candidate(watched, query, strategy) for strategy in query.strategy])


@router.get("/jobs/{job}/balance", responses=_job_problems)
def balance(watched: WatchedJob, query: Annotated[BalanceQuery, Query()]) -> outputs.Balance:
    """Dry run of a rebalance by tasks and by keys, side by side, and which of them level auto would carry out."""
    return rendering.render_levels(watched.job.plan_levels(**query.to_arguments()))


def _plan_candidate(watched: Watcher, query: PlanQuery, strategy: str) -> outputs.Candidate:
    began = time.perf_counter()
    plan = problem = None
    try:
        plan = watched.job.plan(**query.to_plan_arguments(strategy))
    except (MigrationError, MdpError) as refused:
        problem = Problem.from_error(refused)  # another strategy may have a plan
    return outputs.Candidate(
        strategy=strategy,
        plan=None if plan is None else rendering.render_plan(plan),
        problem=problem,
        milliseconds=round((time.perf_counter() - began) * 1000, 3),
    )


@router.get("/jobs/{job}/migrations", responses=_job_problems)
def migrations(watched: WatchedJob) -> outputs.Migrations:
    """Migrations since the server started, newest first."""
    return outputs.Migrations(migrations=watched.list_migrations())


@router.get("/jobs/{job}/migrations/{number}", responses=_job_problems)
def migration(watched: WatchedJob, number: MigrationNumber) -> outputs.Migration:
    """One migration with its progress and its moves."""
    return rendering.render_migration(watched.tracker.find(number))


@router.get("/jobs/{job}/migrations/{number}/plan", responses=_job_problems)
def migration_plan(watched: WatchedJob, number: MigrationNumber) -> outputs.Plan | outputs.KeyPlan:
    """The plan of a migration."""
    migration = watched.tracker.find(number).migration
    if isinstance(migration, TaskMigration):
        return rendering.render_plan(migration.plan)
    return rendering.render_key_plan(migration.plan)


@router.get("/jobs/{job}/migrations/{number}/story", responses=_job_problems)
def story(
    watched: WatchedJob,
    number: MigrationNumber,
    after: Annotated[int, Query(ge=0, le=10**9, description="Number of lines to skip.")] = 0,
) -> outputs.Story:
    """Events and decisions of a migration in order, up to a thousand lines at a time."""
    lines = watched.tracker.find(number).migration.story()
    return outputs.Story(total=len(lines), lines=lines[after : after + _MAX_LINES])


@router.get("/jobs/{job}/journal", responses=_job_problems)
def journal(
    watched: WatchedJob,
    before: Annotated[int | None, Query(ge=1, le=10**12, description="Only records with a lower number.")] = None,
    limit: Annotated[int, Query(ge=1, le=_MAX_RECORDS, description="Maximum number of records.")] = 50,
) -> outputs.JournalPage:
    """Migrations and autoscaling decisions of all runs of the job, newest first."""
    page = watched.job.journal_page(limit, before)
    return outputs.JournalPage(total=page.total, records=page.records, before=page.before)
