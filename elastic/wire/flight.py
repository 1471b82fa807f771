"""Arrow Flight as the network of a job: JSON for control, tables for rows, a token on every call."""

import hmac
import json
import logging
import socket
from collections.abc import Iterable, Iterator, Mapping
from threading import Event
from typing import Any

import pyarrow as pa
from pyarrow import flight

from elastic.wire.network import CALL_SECONDS, Action, Download, Hold, PeerUnavailable, Refused, Upload
from storage.stores.protocol import Bytes

_log = logging.getLogger(__name__)
_HEADER = "authorization"
_CHUNK_BYTES = 4 << 20  # a message of Flight may not exceed 2 GB, and is sent when it is complete
_CHUNK_SCHEMA = pa.schema([("bytes", pa.uint8())])
_HOLD = "hold"  # the only word in the ticket of a call that stays open
_HOLD_POLL_SECONDS = 1.0  # until the thread of a call ends whose holder has gone


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

    def hold(self, document: dict[str, Any]) -> "FlightHolding":
        """Open a call that stays open until the owner of the endpoint leaves. Raises as `call` does."""
        ticket = flight.Ticket(json.dumps({_HOLD: document}).encode())
        try:
            reader = self._client.do_get(ticket, flight.FlightCallOptions(headers=self._headers))
            reader.read_chunk()  # the first one says that the endpoint holds the call
        except flight.FlightServerError as error:
            raise Refused(str(error)) from error
        except (pa.ArrowException, StopIteration) as error:
            raise PeerUnavailable(f"{self.address}: {error}") from error
        return FlightHolding(self.address, reader)

    def is_gone(self, timeout: float = CALL_SECONDS) -> bool:
        """Return whether the machine refuses connections to the address: then no process listens there."""
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        self._client.close()

    def _options(self, timeout: float) -> flight.FlightCallOptions:
        return flight.FlightCallOptions(timeout=timeout, headers=self._headers)


class FlightHolding:
    """A stream that says nothing until the owner of the endpoint leaves; its connection breaks with the process."""

    def __init__(self, address: str, reader: flight.FlightStreamReader) -> None:
        self._address = address
        self._reader = reader

    def wait(self) -> None:
        try:
            self._reader.read_chunk()
        except StopIteration:
            return
        except pa.ArrowException as error:
            raise PeerUnavailable(f"{self._address}: {error}") from error
        raise PeerUnavailable(f"{self._address}: a call that is held open said something")

    def close(self) -> None:
        self._reader.cancel()


class FlightEndpoint:
    """A Flight server on a free port, from its construction until `close`. Handlers run in its threads."""

    def __init__(
        self,
        host: str,
        token: str,
        actions: Mapping[str, Action],
        upload: Upload | None = None,
        download: Download | None = None,
        hold: Hold | None = None,
    ) -> None:
        self._server = _Server(host, token, actions, upload, download, hold)
        self.address = f"{host}:{self._server.port}"

    def close(self) -> None:
        self._server.is_closing.set()
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
        hold: Hold | None = None,
    ) -> FlightEndpoint:
        return FlightEndpoint(host, token, actions, upload, download, hold)

    def connect(self, address: str, token: str) -> FlightPeer:
        return FlightPeer(address, token)


class _Server(flight.FlightServerBase):  # type: ignore[misc]
    def __init__(
        self,
        host: str,
        token: str,
        actions: Mapping[str, Action],
        upload: Upload | None,
        download: Download | None,
        hold: Hold | None,
    ) -> None:
        super().__init__(f"grpc://{host}:0", middleware={"token": _TokenCheck(token)})
        self._actions = actions
        self._upload = upload
        self._download = download
        self._hold = hold
        self.is_closing = Event()

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

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.FlightDataStream:
        document = json.loads(ticket.ticket)
        try:
            if _HOLD in document:
                return flight.GeneratorStream(_CHUNK_SCHEMA, self._keep_open(context, document[_HOLD]))
            if self._download is not None:
                return flight.RecordBatchStream(_split_into_chunks(self._download(document)))
        except Refused as refused:
            raise flight.FlightServerError(f"refused: {refused}") from refused
        raise flight.FlightServerError("refused: no downloads here")

    def _keep_open(self, context: Any, document: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Return a stream that says once that it is open, and ends when the owner of this endpoint leaves."""
        if self._hold is None:
            raise Refused("no calls are held open here")
        left = self._hold(document)

        def stream() -> Iterator[pa.RecordBatch]:
            yield pa.record_batch([pa.array([], pa.uint8())], schema=_CHUNK_SCHEMA)
            while not left.wait(_HOLD_POLL_SECONDS):
                if context.is_cancelled() or self.is_closing.is_set():
                    raise flight.FlightUnavailableError("the endpoint is closed")

        return stream()


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
