"""The port between processes of a job: endpoints, peers, and the two ways in which a call can fail.

`FlightNetwork` (in `elastic.wire.flight`) crosses machines; `elastic.local` has one inside this process.
"""

from collections.abc import Callable, Mapping
from threading import Event
from typing import Any, Protocol

import pyarrow as pa

from storage.stores.protocol import Bytes

CALL_SECONDS = 10.0  # handlers only enqueue; a call that takes longer is stuck, or its peer is unreachable

Action = Callable[[dict[str, Any]], Any]
Upload = Callable[[dict[str, Any], pa.Table], None]
Download = Callable[[dict[str, Any]], Bytes]
Hold = Callable[[dict[str, Any]], Event]  # checks who holds; returns what is set when the endpoint's owner leaves


class PeerUnavailable(Exception):
    """The peer did not answer; whether it received the call is unknown."""


class Refused(Exception):
    """Raised by a handler that received a call and does not accept it; the caller must not repeat it as it is.

    A caller gets it for any handler that fails: the same call would fail again.
    """


class Holding(Protocol):
    """A call that stays open for as long as the process behind an endpoint lives, so that its death is noticed."""

    def wait(self) -> None:
        """Return when the owner of the endpoint leaves. Raises `PeerUnavailable` if the connection breaks before."""
        ...

    def close(self) -> None:
        """End the call; `wait` then raises `PeerUnavailable` soon."""
        ...


class Peer(Protocol):
    """A connection to one endpoint; safe to use from many threads. Every method may raise both errors above."""

    @property
    def address(self) -> str: ...

    def call(self, action: str, document: dict[str, Any], timeout: float = CALL_SECONDS) -> Any:
        """Return the handler's answer."""
        ...

    def upload(self, header: dict[str, Any], table: pa.Table, timeout: float = CALL_SECONDS) -> None:
        """Send rows."""
        ...

    def download(self, header: dict[str, Any], size: int, timeout: float = CALL_SECONDS) -> memoryview:
        """Return the `size` bytes that the header names."""
        ...

    def hold(self, document: dict[str, Any]) -> Holding:
        """Open a call that stays open until the owner of the endpoint leaves."""
        ...

    def is_gone(self, timeout: float = CALL_SECONDS) -> bool:
        """Return whether it is certain that no process listens at the address, by a connection of its own.

        False if there is no answer, because then the process may live.
        """
        ...

    def close(self) -> None: ...


class Endpoint(Protocol):
    """A listening end, from its construction until `close`. Handlers run in threads of its own."""

    @property
    def address(self) -> str: ...

    def close(self) -> None: ...


class Network(Protocol):
    """Opens endpoints and connects to them. An endpoint refuses calls that carry another token than its own."""

    def listen(
        self,
        host: str,
        token: str,
        actions: Mapping[str, Action],
        upload: Upload | None = None,
        download: Download | None = None,
        hold: Hold | None = None,
    ) -> Endpoint: ...

    def connect(self, address: str, token: str) -> Peer: ...
