"""Connections of the HTTP server: limits on their number and on how long each waits for its client.

uvicorn alone closes a connection that is idle after a response, but keeps one that never sends a request, or sends it
byte by byte. Clients that only connect could use up all connections, and the health check would be refused.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 128  # at this many, a new connection replaces the one that has waited for its client the longest
RESERVED_CONNECTIONS = 64  # accepted beyond the maximum while no connection can be replaced; then 503


class BoundedConnection(H11Protocol):
    """One connection. Invariant: it waits for its client for `request_seconds` or `write_seconds` at most."""

    request_seconds = 10.0  # for a complete request to arrive; a slow line needs less than a second
    write_seconds = 30.0  # for a client to drain full buffers; then it hangs

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waiting_since = self.loop.time()
        self._request_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the server waits for the client: the request is incomplete, or the last one has its response."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._update_request_timer()
        make_room(other for other in self.connections if isinstance(other, BoundedConnection) and other is not self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_request_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_request_timer()

    def on_response_complete(self) -> None:
        self.waiting_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_write_timer()
        self._write_timer = self.loop.call_later(self.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_write_timer()
        super().resume_writing()

    def _update_request_timer(self) -> None:
        """Start or stop the request timer; bytes that do not complete a request do not extend it."""
        if not self.is_waiting:
            self._stop_request_timer()
        elif self._request_timer is None and not self.transport.is_closing():
            self._request_timer = self.loop.call_later(self.request_seconds, self.transport.abort)

    def _stop_request_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def make_room(connections: Iterable[BoundedConnection]) -> None:
    """Close the connections that have waited for their clients the longest until there is room for one more."""
    alive = [connection for connection in connections if not connection.transport.is_closing()]
    waiting = sorted((connection for connection in alive if connection.is_waiting), key=lambda c: c.waiting_since)
    for connection in waiting[: max(0, len(alive) + 1 - MAX_CONNECTIONS)]:
        connection.transport.abort()
