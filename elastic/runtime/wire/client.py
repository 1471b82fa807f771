"""The calling end: one connection to one endpoint, safe to use from many threads."""

import json
from typing import Any

import pyarrow as pa
from pyarrow import flight

from elastic.runtime.wire.chunks import joined
from elastic.runtime.wire.server import Refused
from elastic.runtime.wire.token import HEADER

CALL_SECONDS = 10.0  # a handler only takes notes; one that needs longer is stuck or unreachable


class PeerUnavailable(Exception):
    """The other end did not answer; whether it heard is unknown."""


class Peer:
    """An endpoint elsewhere."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self._client = flight.FlightClient(f"grpc://{address}", generic_options=[("grpc.enable_http_proxy", 0)])
        self._headers = [(HEADER.encode(), f"Bearer {token}".encode())]

    def call(self, action: str, document: dict[str, Any], timeout: float = CALL_SECONDS) -> Any:
        """What the handler answered. Raises `Refused`, or `PeerUnavailable` if there was no answer."""
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
        """The `size` bytes that the header names. Raises as `call` does."""
        try:
            reader = self._client.do_get(flight.Ticket(json.dumps(header).encode()), self._options(timeout))
            return joined((chunk.data for chunk in reader), size)
        except flight.FlightServerError as error:
            raise Refused(str(error)) from error
        except (pa.ArrowException, ValueError) as error:
            raise PeerUnavailable(f"{self.address}: {error}") from error

    def close(self) -> None:
        self._client.close()

    def _options(self, timeout: float) -> flight.FlightCallOptions:
        return flight.FlightCallOptions(timeout=timeout, headers=self._headers)
