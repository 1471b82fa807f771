"""Limits on connections, with real sockets on loopback."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

import elastic.api
from elastic.api.connections import MAX_CONNECTIONS, BoundedConnection
from elastic.api.server import Server
from elastic.control import JournalPage
from tests.elastic.api.paper_job import PaperJob

CLIENTS = 200  # above every limit of the server
REQUEST = b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def server() -> Iterator[Server]:
    with elastic.api.serve(PaperJob()) as served:
        yield served


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(server: Server) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=10)


def ask(server: Server, path: str = "health") -> tuple[int, bytes]:
    address = urlsplit(server.url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    try:
        connection.request("GET", f"/api/v1/{path}")
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def is_closed(client: socket.socket, seconds: float) -> bool:
    """Whether the server closes the connection within that time."""
    client.settimeout(seconds)
    try:
        while client.recv(65_536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def send_slowly(client: socket.socket, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        client.sendall(b"X")
        time.sleep(0.1)


def test_clients_that_only_connect_do_not_block_a_health_check(server: Server, clients: ExitStack) -> None:
    for _ in range(CLIENTS):
        clients.enter_context(connect(server))
    for _ in range(20):
        status, body = ask(server)
        assert status == 200, body
        assert json.loads(body)["status"] == "ok"


def test_clients_that_keep_their_connections_do_not_block_a_health_check(server: Server, clients: ExitStack) -> None:
    for _ in range(CLIENTS):
        client = clients.enter_context(connect(server))
        client.sendall(REQUEST)
        assert client.recv(65_536).startswith(b"HTTP/1.1 200")
    assert ask(server)[0] == 200


def test_clients_that_keep_connecting_do_not_block_a_health_check(server: Server, clients: ExitStack) -> None:
    over = threading.Event()

    def flood() -> None:
        kept: list[socket.socket] = []
        while not over.is_set():
            kept.append(connect(server))
            if len(kept) > CLIENTS:
                kept.pop(0).close()
        for client in kept:
            client.close()

    flooding = threading.Thread(target=flood)
    flooding.start()
    clients.callback(flooding.join, 10)
    clients.callback(over.set)
    time.sleep(0.3)
    assert [ask(server)[0] for _ in range(20)] == [200] * 20


def test_a_new_connection_replaces_the_one_that_has_waited_longest(server: Server, clients: ExitStack) -> None:
    first = clients.enter_context(connect(server))
    others = [clients.enter_context(connect(server)) for _ in range(MAX_CONNECTIONS)]
    assert is_closed(first, 5)
    assert not is_closed(others[-1], 0.2)


def test_a_request_has_to_arrive_within_its_time_limit(
    server: Server, clients: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedConnection, "request_seconds", 0.5)
    silent, half, body, dribbling = (clients.enter_context(connect(server)) for _ in range(4))
    half.sendall(REQUEST[:-4])
    body.sendall(
        f"POST /api/v1/jobs/words/scale HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
        "Content-Length: 20\r\n\r\n{".encode()
    )
    began = time.monotonic()
    with pytest.raises(ConnectionError):
        send_slowly(dribbling, seconds=5)
    assert time.monotonic() - began < 3
    assert all(is_closed(client, 3) for client in (silent, half, body))


def test_an_event_stream_outlives_the_time_limit_of_a_request(
    server: Server, clients: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedConnection, "request_seconds", 0.3)
    stream = clients.enter_context(connect(server))
    stream.sendall(REQUEST.replace(b"health", b"jobs/words/events"))
    read, ends = b"", time.monotonic() + 10
    while read.count(b"event: snapshot") < 4 and time.monotonic() < ends:
        read += stream.recv(65_536)
    assert read.count(b"event: snapshot") >= 4


def test_a_client_that_does_not_read_is_disconnected(
    server: Server, clients: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedConnection, "write_seconds", 0.5)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    clients.enter_context(client)
    address = urlsplit(server.url)
    client.connect((address.hostname, address.port))
    client.settimeout(10)
    requests = REQUEST.replace(b"health", b"openapi.json") * 100_000  # their responses fill the buffers
    with pytest.raises(ConnectionError):
        client.sendall(requests)


class SlowJournalJob(PaperJob):
    """A job whose store does not respond until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def journal_page(self, limit: int, before: int | None = None) -> JournalPage:
        self.released.wait(30)
        return super().journal_page(limit, before)


def test_requests_that_wait_for_the_store_do_not_block_a_health_check(clients: ExitStack) -> None:
    job = SlowJournalJob()
    server = clients.enter_context(elastic.api.serve(job))
    clients.callback(job.released.set)
    for _ in range(60):  # more than the server has threads
        clients.enter_context(connect(server)).sendall(REQUEST.replace(b"health", b"jobs/words/journal"))
    began = time.monotonic()
    assert ask(server)[0] == 200
    assert time.monotonic() - began < 5
