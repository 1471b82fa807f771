"""Arrow Flight as the network of a job: JSON for control, tables for rows, a token on every call."""

import hmac
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyarrow import flight

from elastic.wire.network import CALL_SECONDS, Action, Download, PeerUnavailable, Refused, Upload
from storage.stores.protocol import Bytes

_log = logging.getLogger(__name__)
_HEADER = "authorization"
_CHUNK_BYTES = 4 << 20  # a message of Flight may not exceed 2 GB, and is sent when it is complete
_CHUNK_SCHEMA = pa.schema([("bytes", pa.uint8())])


class FlightPeer:
    """A connection to an endpoint on this or another machine."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self._client = flight.FlightClient(f"grpc://{address}", generic_options=[("grpc.enable_http_proxy", 0)])
        self._headers = [(_HEADER.encode(), f"Bearer {token}".encode())]

    def call(self, action: str, document: dict[str, Any], timeout: float = CALL_SECONDS) -> Any:
        """Return the answer of the handler. Raises `Refused`, or `PeerUnavailable` if there was no answer."""
        try:
            results = self._client.do_action(
                flight.Action(action, json.dumps(document).encode()), self._options(timeout)
            )
            answer = next(iter(results)).body.to_pybytes()
        except flight.FlightServerError as error:
            raise Refused(str(error)) from error
        except pa.ArrowException as error:
            raise PeerUnavailable(f"{self.address}: {error}") from error
        return json.loads(answer)

    def upload(self, header: dict[str, Any], table: pa.Table, timeout: float = CALL_SECONDS) -> None:
        """Send rows. Raises as `call` does."""
        descriptor = flight.FlightDescriptor.for_command(json.dumps(header).encode())
        try:
            writer, reader = self._client.do_put(descriptor, table.schema, self._options(timeout))
            with writer:
                writer.write_table(table)
                writer.done_writing()
                reader.read()  # the answer, or the error; without it a refusal would be lost
        except flight.FlightServerError as error:
            raise Refused(str(error)) from error
        except pa.ArrowException as error:
            raise PeerUnavailable(f"{self.address}: {error}") from error

    def download(self, header: dict[str, Any], size: int, timeout: float = CALL_SECONDS) -> memoryview:
        """Return the `size` bytes that the header names. Raises as `call` does."""
        try:
            reader = self._client.do_get(flight.Ticket(json.dumps(header).encode()), self._options(timeout))
            return _join_chunks((chunk.data for chunk in reader), size)
        except flight.FlightServerError as error:
            raise Refused(str(error)) from error
        except (pa.ArrowException, ValueError) as error:
            raise PeerUnavailable(f"{self.address}: {error}") from error

    def close(self) -> None:
        self._client.close()

    def _options(self, timeout: float) -> flight.FlightCallOptions:
        return flight.FlightCallOptions(timeout=timeout, headers=self._headers)


class FlightEndpoint:
    """A Flight server on a free port, from its construction until `close`. Handlers run in its threads."""

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


class FlightNetwork:
    """Each endpoint listens on a free port of the given host."""

    def listen(
        self,
        host: str,
        token: str,
        actions: Mapping[str, Action],
        upload: Upload | None = None,
        download: Download | None = None,
    ) -> FlightEndpoint:
        return FlightEndpoint(host, token, actions, upload, download)

    def connect(self, address: str, token: str) -> FlightPeer:
        return FlightPeer(address, token)


class _Server(flight.FlightServerBase):  # type: ignore[misc]
    def __init__(
        self, host: str, token: str, actions: Mapping[str, Action], upload: Upload | None, download: Download | None
    ) -> None:
        super().__init__(f"grpc://{host}:0", middleware={"token": _TokenCheck(token)})
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
            return flight.RecordBatchStream(_split_into_chunks(self._download(json.loads(ticket.ticket))))
        except Refused as refused:
            raise flight.FlightServerError(f"refused: {refused}") from refused


class _TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses every call without the token, before its content is read."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}"

    def start_call(self, _info: Any, headers: Mapping[str, list[str]]) -> None:
        given = next((values[0] for name, values in headers.items() if name.lower() == _HEADER), "")
        if not hmac.compare_digest(given, self._expected):
            raise flight.FlightUnauthenticatedError("the call carries no valid token of this application")


def _split_into_chunks(data: Bytes) -> pa.Table:
    """Return a table of chunks that are views of the data."""
    whole = pa.py_buffer(data)
    starts = range(0, whole.size, _CHUNK_BYTES)
    pieces = [whole.slice(start, min(_CHUNK_BYTES, whole.size - start)) for start in starts]
    arrays = [pa.Array.from_buffers(pa.uint8(), piece.size, [None, piece]) for piece in pieces]
    return pa.table([pa.chunked_array(arrays, pa.uint8())], schema=_CHUNK_SCHEMA)


def _join_chunks(batches: Iterable[pa.RecordBatch], size: int) -> memoryview:
    """Return the data of all chunks in one piece of memory; `ValueError` if it does not have that size."""
    memory = memoryview(pa.allocate_buffer(size)).cast("B")
    end = 0
    for batch in batches:
        piece = memoryview(batch.column(0).to_numpy())
        if end + len(piece) > size:
            raise ValueError(f"received more than {size} bytes")
        memory[end : end + len(piece)] = piece
        end += len(piece)
    if end != size:
        raise ValueError(f"received {end} of {size} bytes")
    return memory.toreadonly()
