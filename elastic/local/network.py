"""Calls inside this process: the handler runs in the thread of the caller, with what a wire would have delivered."""

import hmac
import json
import logging
from collections.abc import Callable, Mapping
from itertools import count
from threading import Event
from typing import Any, TypeVar

import pyarrow as pa

from elastic import threads
from elastic.wire.network import CALL_SECONDS, Action, Download, Hold, PeerUnavailable, Refused, Upload

Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)


class LocalNetwork:
    """Endpoints by address, `local:1`, `local:2` and so on. Each instance is a network of its own."""

    def __init__(self) -> None:
        self._endpoints: dict[str, LocalEndpoint] = {}
        self._numbers = count(1)

    def listen(
        self,
        host: str,  # noqa: ARG002 - every endpoint is in this process
        token: str,
        actions: Mapping[str, Action],
        upload: Upload | None = None,
        download: Download | None = None,
        hold: Hold | None = None,
    ) -> "LocalEndpoint":
        address = f"local:{next(self._numbers)}"

        def forget() -> None:
            self._endpoints.pop(address, None)

        endpoint = LocalEndpoint(address, token, actions, upload, download, hold, forget)
        self._endpoints[address] = endpoint
        return endpoint

    def connect(self, address: str, token: str) -> "LocalPeer":
        return LocalPeer(address, token, self._endpoints.get)


class LocalEndpoint:
    """A listening end; see `elastic.wire.Endpoint`."""

    def __init__(
        self,
        address: str,
        token: str,
        actions: Mapping[str, Action],
        upload: Upload | None,
        download: Download | None,
        hold: Hold | None,
        on_close: Callable[[], object],
    ) -> None:
        self.address = address
        self.upload = upload
        self.download = download
        self.hold = hold
        self.holdings: dict[LocalHolding, None] = {}  # in order, so that a simulation repeats
        self._token = token
        self._actions = actions
        self._on_close = on_close

    def close(self) -> None:
        """Close it; a call that is held open ends well if the owner has left before, and breaks otherwise."""
        self._on_close()
        for holding in list(self.holdings):
            holding.close()

    def check_token(self, token: str) -> None:
        if not hmac.compare_digest(token, self._token):
            raise PeerUnavailable(f"{self.address}: the call carries no valid token of this application")

    def handle(self, action: str, document: dict[str, Any]) -> Any:
        handler = self._actions.get(action)
        if handler is None:
            raise Refused(f"no action {action!r}")
        return handler(document)


class LocalPeer:
    """A calling end; see `elastic.wire.Peer`. A handler returns at once, so no call takes longer than its timeout."""

    def __init__(self, address: str, token: str, find: Callable[[str], LocalEndpoint | None]) -> None:
        self.address = address
        self._token = token
        self._find = find

    def call(self, action: str, document: dict[str, Any], timeout: float = CALL_SECONDS) -> Any:  # noqa: ARG002
        endpoint = self._endpoint()
        sent = json.loads(json.dumps(document))
        return json.loads(json.dumps(_run(action, lambda: endpoint.handle(action, sent))))

    def upload(self, header: dict[str, Any], table: pa.Table, timeout: float = CALL_SECONDS) -> None:  # noqa: ARG002
        handler = self._endpoint().upload
        if handler is None:
            raise Refused("no uploads here")
        sent = json.loads(json.dumps(header))
        _run("upload", lambda: handler(sent, table))

    def download(self, header: dict[str, Any], size: int, timeout: float = CALL_SECONDS) -> memoryview:  # noqa: ARG002
        handler = self._endpoint().download
        if handler is None:
            raise Refused("no downloads here")
        sent = json.loads(json.dumps(header))
        data = memoryview(bytes(_run("download", lambda: handler(sent))))
        if len(data) != size:
            raise PeerUnavailable(f"{self.address}: received {len(data)} of {size} bytes")
        return data

    def hold(self, document: dict[str, Any]) -> "LocalHolding":
        endpoint = self._endpoint()
        handler = endpoint.hold
        if handler is None:
            raise Refused("no calls are held open here")
        sent = json.loads(json.dumps(document))
        holding = LocalHolding(self.address, _run("hold", lambda: handler(sent)))
        endpoint.holdings[holding] = None
        if self.is_gone():
            holding.close()
        return holding

    def is_gone(self, timeout: float = CALL_SECONDS) -> bool:  # noqa: ARG002
        return self._find(self.address) is None

    def close(self) -> None:
        """Nothing to give back."""

    def _endpoint(self) -> LocalEndpoint:
        endpoint = self._find(self.address)
        if endpoint is None:
            raise PeerUnavailable(f"{self.address}: nothing listens there")
        endpoint.check_token(self._token)
        return endpoint


class LocalHolding:
    """A call that stays open until its endpoint or its holder closes it."""

    def __init__(self, address: str, left: Event) -> None:
        self._address = address
        self._left = left
        self._ended = threads.Event()

    def wait(self) -> None:
        self._ended.wait()
        if not self._left.is_set():
            raise PeerUnavailable(f"{self._address}: the connection broke")

    def close(self) -> None:
        self._ended.set()


def _run(action: str, handle: Callable[[], Answer]) -> Answer:
    """Call a handler; any error it raises reaches the caller as a refusal."""
    try:
        return handle()
    except Refused:
        raise
    except Exception as error:
        _log.exception("the handler of %s failed", action)
        raise Refused(f"failed: {type(error).__name__}: {error}") from error
