"""Routes that change a job. The request guard has checked the token; here it is only described."""

from fastapi import APIRouter, Depends, Response
from fastapi.security import HTTPBearer

from elastic.api import outputs
from elastic.api.errors import MigrationOver
from elastic.api.inputs import RebalanceBody, ScaleBody, SplitBody
from elastic.api.migrations import TrackedMigration
from elastic.api.problems import describe
from elastic.api.registry import MigrationNumber, WatchedJob
from elastic.api.rendering import render_migration
from elastic.api.watcher import Watcher
from elastic.control import Migration
from elastic.errors import JobStopped

_token = HTTPBearer(auto_error=False, description="The server's token; the user who started the server has it.")
router = APIRouter(
    tags=["change"], dependencies=[Depends(_token)], responses=describe(400, 401, 404, 409, 413, 422, 503)
)


@router.post("/jobs/{job}/scale", status_code=202)
def scale(watched: WatchedJob, body: ScaleBody, response: Response) -> outputs.Migration:
    """Start a migration to another number of nodes; 409 while another migration is in progress."""
    _check_running(watched)
    return _render_started(watched, watched.job.scale(**body.to_arguments()), response)


@router.post("/jobs/{job}/rebalance", status_code=202)
def rebalance(watched: WatchedJob, body: RebalanceBody, response: Response) -> outputs.Migration:
    """Start to move tasks or keys between the current nodes, until none is above its cap."""
    _check_running(watched)
    return _render_started(watched, watched.job.rebalance(**body.to_arguments()), response)


@router.post("/jobs/{job}/split")
def split(watched: WatchedJob, body: SplitBody) -> outputs.SplitKeys:
    """Change which keys a partial stage splits; responds when that is committed. No state moves."""
    _check_running(watched)
    watched.job.split(body.split, body.stage)
    return outputs.SplitKeys(split=body.split, stage=body.stage)


@router.post("/jobs/{job}/migrations/{number}/pause")
def pause(watched: WatchedJob, number: MigrationNumber) -> outputs.Migration:
    """Pause after the current mini-migration, or the current portion of keys."""
    tracked = _find_running(watched, number)
    tracked.migration.pause()
    return render_migration(tracked)


@router.post("/jobs/{job}/migrations/{number}/resume")
def resume(watched: WatchedJob, number: MigrationNumber) -> outputs.Migration:
    """Resume a paused migration."""
    tracked = _find_running(watched, number)
    tracked.migration.resume()
    return render_migration(tracked)


@router.post("/jobs/{job}/migrations/{number}/cancel")
def cancel(watched: WatchedJob, number: MigrationNumber) -> outputs.Migration:
    """Skip the moves that have not started; completed moves stay."""
    tracked = _find_running(watched, number)
    tracked.migration.cancel()
    return render_migration(tracked)


def _check_running(watched: Watcher) -> None:
    """Raise `JobStopped` without the cause, which may quote rows; the owner of the job gets the cause in Python."""
    state = watched.job.status().state
    if state != "running":
        raise JobStopped(watched.job.name, f"it has {state}" if state == "failed" else "")


def _render_started(watched: Watcher, migration: Migration, response: Response) -> outputs.Migration:
    tracked = watched.tracker.track(migration)
    response.headers["Location"] = f"/api/v1/jobs/{watched.job.name}/migrations/{tracked.number}"
    return render_migration(tracked)


def _find_running(watched: Watcher, number: int) -> TrackedMigration:
    tracked = watched.tracker.find(number)
    if tracked.migration.is_over:
        raise MigrationOver(number, tracked.migration.phase)
    return tracked
