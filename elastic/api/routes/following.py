"""What the page listens to: snapshots and response times, as JSON and as server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from elastic.api import outputs
from elastic.api.errors import TooManyListeners
from elastic.api.problems import described
from elastic.api.routes.watched import Watched
from elastic.api.watcher import SNAPSHOT_SECONDS, Watcher

MOST_LISTENERS = 32
_LOOK_SECONDS = SNAPSHOT_SECONDS / 4
_SILENCE_SECONDS = 15.0  # a comment at least so often, so that nobody on the way takes the stream for dead

following = APIRouter(tags=["following"])


@following.get("/jobs/{job}/snapshot", responses=described(404, 422, 503))
def snapshot(watched: Watched) -> outputs.Snapshot:
    """All that the page shows, at most half a second old."""
    return watched.snapshot()


@following.get("/jobs/{job}/responses", responses=described(404, 422, 503))
def responses(
    watched: Watched, after: Annotated[int, Query(ge=0, le=10**12, description="only those with a higher id")] = 0
) -> outputs.Responses:
    """Response times of the last ten minutes."""
    return outputs.Responses(responses=watched.history.after(after))


@following.get(
    "/jobs/{job}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}, **described(404, 422, 503)},
)
async def events(
    request: Request,
    watched: Watched,
    last_event_id: Annotated[str, Header(max_length=20, description="the newest id that the client has seen")] = "0",
) -> StreamingResponse:
    """First an event `history` (as /responses, after the last id), then an event `snapshot` twice a second."""
    listeners: Listeners = request.app.state.listeners
    after = int(last_event_id) if last_event_id.isdecimal() else 0
    listeners.enter()
    return _Stream(listeners, watched, after)


class Listeners:
    """The event streams of one server; used by its event loop only."""

    def __init__(self) -> None:
        self.count = 0
        self._closing = False

    def enter(self) -> None:
        if self.count >= MOST_LISTENERS or self._closing:
            raise TooManyListeners(MOST_LISTENERS)
        self.count += 1

    def leave(self) -> None:
        self.count -= 1

    def close(self) -> None:
        """Every stream ends within a moment."""
        self._closing = True

    async def tell(self, watched: Watcher, after: int) -> AsyncIterator[str]:
        history = outputs.Responses(responses=watched.history.after(after))
        yield f"retry: 1000\nevent: history\ndata: {history.model_dump_json()}\n\n"
        told, silent = 0, 0.0
        while not self._closing:
            newest = watched.snapshot()
            if newest.id != told:
                told, silent = newest.id, 0.0
                yield f"id: {newest.id}\nevent: snapshot\ndata: {newest.model_dump_json()}\n\n"
            elif silent > _SILENCE_SECONDS:
                silent = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(_LOOK_SECONDS)
            silent += _LOOK_SECONDS


class _Stream(StreamingResponse):
    """Leaves when it is over, also if its client was gone before the first word."""

    def __init__(self, listeners: Listeners, watched: Watcher, after: int) -> None:
        super().__init__(listeners.tell(watched, after), media_type="text/event-stream")
        self._listeners = listeners

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._listeners.leave()
