"""The listening end: named actions that take and give JSON, uploads of rows, and downloads of bytes."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyarrow import flight

from elastic.runtime.wire.chunks import chunked
from elastic.runtime.wire.token import TokenCheck
from storage.stores.protocol import Bytes

_log = logging.getLogger(__name__)

Action = Callable[[dict[str, Any]], Any]
Upload = Callable[[dict[str, Any], pa.Table], None]
Download = Callable[[dict[str, Any]], Bytes]


class Refused(Exception):
    """Raised by a handler: the call is understood and not accepted; the caller must not repeat it as it is.

    A caller gets it for any handler that fails: the same call would fail again.
    """


class Endpoint:
    """A Flight server on a port of its own choice, from its construction until `close`. Handlers run in its threads."""

    def __init__(
        self,
        host: str,
        token: str,
        actions: Mapping[str, Action],
        upload: Upload | None = None,
        download: Download | None = None,
    ) -> None:
        self._server = _Server(host, token, actions, upload, download)
        self.address = f"{host}:{self._server.port}"

    def close(self) -> None:
        self._server.shutdown()


class _Server(flight.FlightServerBase):  # type: ignore[misc]
    def __init__(
        self, host: str, token: str, actions: Mapping[str, Action], upload: Upload | None, download: Download | None
    ) -> None:
        super().__init__(f"grpc://{host}:0", middleware={"token": TokenCheck(token)})
        self._actions = actions
        self._upload = upload
        self._download = download

    def do_action(self, _context: Any, action: flight.Action) -> Iterator[bytes]:
        handler = self._actions.get(action.type)
        if handler is None:
            raise flight.FlightServerError(f"no action {action.type!r}")
        document = json.loads(action.body.to_pybytes() or b"{}")
        try:
            answer = handler(document)
        except Refused as refused:
            raise flight.FlightServerError(f"refused: {refused}") from refused
        except Exception as error:
            # Flight would translate some types into errors that look like those of a connection.
            _log.exception("the handler of %s failed", action.type)
            raise flight.FlightServerError(f"failed: {type(error).__name__}: {error}") from error
        return iter([json.dumps(answer).encode()])

    def do_put(self, _context: Any, descriptor: Any, reader: Any, _writer: Any) -> None:
        if self._upload is None:
            raise flight.FlightServerError("refused: no uploads here")
        try:
            self._upload(json.loads(descriptor.command), reader.read_all())
        except Refused as refused:
            raise flight.FlightServerError(f"refused: {refused}") from refused

    def do_get(self, _context: Any, ticket: flight.Ticket) -> flight.RecordBatchStream:
        if self._download is None:
            raise flight.FlightServerError("refused: no downloads here")
        try:
            return flight.RecordBatchStream(chunked(self._download(json.loads(ticket.ticket))))
        except Refused as refused:
            raise flight.FlightServerError(f"refused: {refused}") from refused
