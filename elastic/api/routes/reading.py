"""What anybody who reaches the server may ask. Changes nothing."""

import time
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse

from elastic.api import outputs, rendering
from elastic.api.inputs import PlanQuery
from elastic.api.metrics import CONTENT_TYPE, Scraped, exposition
from elastic.api.problems import Problem, described
from elastic.api.routes.watched import Boarded, MigrationNumber, Watched
from elastic.api.watcher import Watcher
from mdp.errors import MdpError
from migration.errors import MigrationError

_MOST_RECORDS = 200
_MOST_LINES = 1_000

reading = APIRouter(tags=["reading"])
_of_a_job = described(404, 422, 503)


@reading.get("/health", responses={503: {"model": outputs.Health}})
async def health(board: Boarded, response: Response) -> outputs.Health:
    """Whether all jobs are well: 503 if one has failed or cannot be looked at.

    A job that runs, but with a step that is overdue, a sink that failed or a node that cannot start, is degraded. The
    answer is 200 then: whoever restarts what is not healthy should not restart that.
    """
    # Not in the thread pool: requests that wait for the store or plan for long must not hold up a health check.
    found = {watcher.job.name: await _health(watcher) for watcher in board.watchers}
    states = {state for state, _ in found.values()}
    failing = not states.isdisjoint(("failed", "unknown"))
    response.status_code = 503 if failing else 200
    return outputs.Health(
        status="failing" if failing else "degraded" if "degraded" in states else "ok",
        jobs={job: state for job, (state, _) in found.items()},
        problems={job: problems for job, (_, problems) in found.items() if problems},
    )


async def _health(watcher: Watcher) -> tuple[str, list[str]]:
    """The state of a job, and what is wrong with it."""
    snapshot = watcher.newest
    if snapshot is None:
        snapshot = await run_in_threadpool(watcher.snapshot)
    if watcher.is_stale:
        return "unknown", []
    return ("degraded" if snapshot.problems else snapshot.state), snapshot.problems


@reading.get("/metrics", response_class=PlainTextResponse, responses={200: {"content": {"text/plain": {}}}})
def metrics(board: Boarded) -> PlainTextResponse:
    """For Prometheus, in its text format."""
    scraped = [Scraped(watcher.snapshot(), watcher.seen.outcomes()) for watcher in board.watchers]
    return PlainTextResponse(exposition(scraped), media_type=CONTENT_TYPE)


@reading.get("/jobs")
def jobs(board: Boarded) -> list[outputs.JobSummary]:
    """The jobs of this server, with their operators."""
    return [rendering.job_summary(watcher.job) for watcher in board.watchers]


@reading.get("/jobs/{job}", responses=_of_a_job)
def job_summary(watched: Watched) -> outputs.JobSummary:
    """One job, with its operators."""
    return rendering.job_summary(watched.job)


@reading.get("/jobs/{job}/status", responses=_of_a_job)
def status(watched: Watched) -> outputs.Status:
    """Nodes, batches, rows, losses and recoveries."""
    return rendering.status(watched.job.status())


@reading.get("/jobs/{job}/assignment", responses=_of_a_job)
def assignment(watched: Watched) -> outputs.Assignment:
    """Which node owns which tasks."""
    return rendering.assignment(watched.job.assignment())


@reading.get("/jobs/{job}/load", responses=_of_a_job)
def load(watched: Watched, seconds: Annotated[float, Query(gt=0, le=60, allow_inf_nan=False)] = 60.0) -> outputs.Load:
    """How busy nodes were in the last seconds."""
    return rendering.load(watched.job.load(seconds))


@reading.get("/jobs/{job}/workload", responses=_of_a_job)
def workload(watched: Watched) -> outputs.Workload:
    """Work and state of every task."""
    return rendering.workload(watched.job.workload())


@reading.get("/jobs/{job}/plan", responses=_of_a_job)
def plan(watched: Watched, asked: Annotated[PlanQuery, Query()]) -> outputs.Comparison:
    """A dry run: what each strategy would do, side by side."""
    return outputs.Comparison(plans=[_candidate(watched, asked, strategy) for strategy in asked.strategy])


def _candidate(watched: Watcher, asked: PlanQuery, strategy: str) -> outputs.Candidate:
    began = time.perf_counter()
    made = problem = None
    try:
        made = watched.job.plan(**asked.arguments_for(strategy))
    except (MigrationError, MdpError) as refused:
        problem = Problem.of(refused)  # another strategy may do better
    return outputs.Candidate(
        strategy=strategy,
        plan=None if made is None else rendering.plan(made),
        problem=problem,
        milliseconds=round((time.perf_counter() - began) * 1000, 3),
    )


@reading.get("/jobs/{job}/migrations", responses=_of_a_job)
def migrations(watched: Watched) -> outputs.Migrations:
    """Those that were seen since the server started, newest first."""
    return outputs.Migrations(migrations=watched.migrations())


@reading.get("/jobs/{job}/migrations/{number}", responses=_of_a_job)
def migration(watched: Watched, number: MigrationNumber) -> outputs.Migration:
    """One migration with its progress and every task that it moves."""
    return rendering.migration(watched.seen.find(number))


@reading.get("/jobs/{job}/migrations/{number}/plan", responses=_of_a_job)
def migration_plan(watched: Watched, number: MigrationNumber) -> outputs.Plan:
    """The plan that it carries out."""
    return rendering.plan(watched.seen.find(number).migration.plan)


@reading.get("/jobs/{job}/migrations/{number}/story", responses=_of_a_job)
def story(
    watched: Watched,
    number: MigrationNumber,
    after: Annotated[int, Query(ge=0, le=10**9, description="leave out so many lines")] = 0,
) -> outputs.Story:
    """What happened in it, in order, a thousand lines at a time."""
    told = watched.seen.find(number).migration.story()
    return outputs.Story(total=len(told), lines=told[after : after + _MOST_LINES])


@reading.get("/jobs/{job}/journal", responses=_of_a_job)
def journal(
    watched: Watched,
    before: Annotated[int | None, Query(ge=1, le=10**12, description="only records with a lower number")] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_RECORDS)] = 50,
) -> outputs.JournalPage:
    """What was decided about the job in all its lives, newest first."""
    page = watched.job.journal_page(limit, before)
    return outputs.JournalPage(total=page.total, records=page.records, before=page.before)
