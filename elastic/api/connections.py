"""Connections of the HTTP server: bounds on how long and how many of them wait for their clients.

uvicorn alone closes a connection that is idle after a response, but keeps one that never sends a request, or sends it
byte by byte. Clients that only connect could use up all connections, and the health check would be refused.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 128  # at that many, a new connection replaces the one that has waited for its client the longest
RESERVED_CONNECTIONS = 64  # accepted beyond that while all others are being answered; then 503


class BoundedConnection(H11Protocol):
    """One connection. Invariant: it waits for its client for `request_seconds` or `write_seconds` at most."""

    request_seconds = 10.0  # for a request to arrive with its body: a slow line needs less than a second
    write_seconds = 30.0  # for a client to read what fills its buffers: then it hangs, or does not want it

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.waiting_since = self.loop.time()
        self._request_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the next step is the client's: no request has arrived completely, or the last one is answered."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_request()
        make_room(one for one in self.connections if isinstance(one, BoundedConnection) and one is not self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_request_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_request()

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

    def _watch_request(self) -> None:
        """Bytes that do not complete a request do not extend its time."""
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
    open_ones = [one for one in connections if not one.transport.is_closing()]
    waiting = sorted((one for one in open_ones if one.is_waiting), key=lambda one: one.waiting_since)
    for one in waiting[: max(0, len(open_ones) + 1 - MOST_CONNECTIONS)]:
        one.transport.abort()
