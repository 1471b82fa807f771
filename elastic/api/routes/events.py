"""Live data for the page: snapshots and response times, as JSON and as server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from elastic.api import outputs
from elastic.api.errors import TooManyListeners
from elastic.api.problems import describe
from elastic.api.registry import WatchedJob
from elastic.api.watcher import SNAPSHOT_SECONDS, Watcher

MAX_LISTENERS = 32
_POLL_SECONDS = SNAPSHOT_SECONDS / 4
_KEEP_ALIVE_SECONDS = 15.0  # a comment at least this often, so that no proxy takes the stream for dead

router = APIRouter(tags=["live"])


@router.get("/jobs/{job}/snapshot", responses=describe(404, 422, 503))
def snapshot(watched: WatchedJob) -> outputs.Snapshot:
    """All data of the page, at most half a second old."""
    return watched.snapshot()


@router.get("/jobs/{job}/responses", responses=describe(404, 422, 503))
def responses(
    watched: WatchedJob, after: Annotated[int, Query(ge=0, le=10**12, description="Only those with a higher id.")] = 0
) -> outputs.Responses:
    """Response times of the last ten minutes."""
    return outputs.Responses(responses=watched.history.after(after))


@router.get(
    "/jobs/{job}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}, **describe(404, 422, 503)},
)
async def events(
    request: Request,
    watched: WatchedJob,
    last_event_id: Annotated[str, Header(max_length=20, description="The newest id that the client has.")] = "0",
) -> StreamingResponse:
    """One event `history` (the content of /responses after the last id), then an event `snapshot` twice a second."""
    listeners: Listeners = request.app.state.listeners
    after = int(last_event_id) if last_event_id.isdecimal() else 0
    listeners.enter()
    return _EventStream(listeners, watched, after)


class Listeners:
    """The event streams of one server; used by its event loop only."""

    def __init__(self) -> None:
        self.count = 0
        self._closing = False

    def enter(self) -> None:
        if self.count >= MAX_LISTENERS or self._closing:
            raise TooManyListeners(MAX_LISTENERS)
        self.count += 1

    def leave(self) -> None:
        self.count -= 1

    def close(self) -> None:
        """End every stream at its next poll."""
        self._closing = True

    async def stream(self, watched: Watcher, after: int) -> AsyncIterator[str]:
        history = outputs.Responses(responses=watched.history.after(after))
        yield f"retry: 1000\nevent: history\ndata: {history.model_dump_json()}\n\n"
        sent, idle_seconds = 0, 0.0
        while not self._closing:
            newest = watched.snapshot()
            if newest.id != sent:
                sent, idle_seconds = newest.id, 0.0
                yield f"id: {newest.id}\nevent: snapshot\ndata: {newest.model_dump_json()}\n\n"
            elif idle_seconds > _KEEP_ALIVE_SECONDS:
                idle_seconds = 0.0
                yield ": keep-alive\n\n"
            await asyncio.sleep(_POLL_SECONDS)
            idle_seconds += _POLL_SECONDS


class _EventStream(StreamingResponse):
    """Leaves the listeners when it ends, also if its client disconnects before the first event."""

    def __init__(self, listeners: Listeners, watched: Watcher, after: int) -> None:
        super().__init__(listeners.stream(watched, after), media_type="text/event-stream")
        self._listeners = listeners

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._listeners.leave()
