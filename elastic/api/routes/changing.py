"""What changes a job. The door has asked for the token already; here it is only described."""

from fastapi import APIRouter, Depends, Response
from fastapi.security import HTTPBearer

from elastic.api import outputs, rendering
from elastic.api.errors import MigrationOver
from elastic.api.inputs import RebalanceBody, ScaleBody
from elastic.api.problems import described
from elastic.api.routes.watched import MigrationNumber, Watched
from elastic.api.seen import SeenMigration
from elastic.api.watcher import Watcher
from elastic.control import Migration
from elastic.errors import JobStopped

_token = HTTPBearer(auto_error=False, description="the server's token; whoever started it has it")
changing = APIRouter(
    tags=["changing"], dependencies=[Depends(_token)], responses=described(400, 401, 404, 409, 413, 422, 503)
)


@changing.post("/jobs/{job}/scale", status_code=202)
def scale(watched: Watched, body: ScaleBody, response: Response) -> outputs.Migration:
    """Change the number of nodes. Answers when it has begun; 409 while another migration is under way."""
    _check_running(watched)
    return _begun(watched, watched.job.scale(**body.arguments()), response)


@changing.post("/jobs/{job}/rebalance", status_code=202)
def rebalance(watched: Watched, body: RebalanceBody, response: Response) -> outputs.Migration:
    """Move tasks between the nodes that there are, until none carries too much."""
    _check_running(watched)
    return _begun(watched, watched.job.rebalance(**body.arguments()), response)


@changing.post("/jobs/{job}/migrations/{number}/pause")
def pause(watched: Watched, number: MigrationNumber) -> outputs.Migration:
    """Stop after the mini-migration under way."""
    seen = _under_way(watched, number)
    seen.migration.pause()
    return rendering.migration(seen)


@changing.post("/jobs/{job}/migrations/{number}/resume")
def resume(watched: Watched, number: MigrationNumber) -> outputs.Migration:
    """Go on with a paused one."""
    seen = _under_way(watched, number)
    seen.migration.resume()
    return rendering.migration(seen)


@changing.post("/jobs/{job}/migrations/{number}/cancel")
def cancel(watched: Watched, number: MigrationNumber) -> outputs.Migration:
    """Leave out what has not begun; what has moved counts."""
    seen = _under_way(watched, number)
    seen.migration.cancel()
    return rendering.migration(seen)


def _check_running(watched: Watcher) -> None:
    """What ended a job may quote rows, and is told to whoever holds the job; a client hears that it ended."""
    state = watched.job.status().state
    if state != "running":
        raise JobStopped(watched.job.name, f"it has {state}" if state == "failed" else "")


def _begun(watched: Watcher, migration: Migration, response: Response) -> outputs.Migration:
    seen = watched.seen.note(migration)
    response.headers["Location"] = f"/api/v1/jobs/{watched.job.name}/migrations/{seen.number}"
    return rendering.migration(seen)


def _under_way(watched: Watcher, number: int) -> SeenMigration:
    seen = watched.seen.find(number)
    if seen.migration.is_over:
        raise MigrationOver(number, seen.migration.phase)
    return seen
