"""The server: its socket, its thread, its event streams."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

import elastic.api
from elastic.api.errors import CannotListen, TokenRequired
from elastic.api.routes.events import MAX_LISTENERS
from elastic.api.server import Server
from elastic.errors import JobNameInUse
from tests.elastic.api.paper_job import PaperJob


@contextmanager
def request(server: Server, path: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
    address = urlsplit(server.url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    connection.request("GET", f"/api/v1/{path}", headers=headers)
    answer = connection.getresponse()
    try:
        yield answer
    finally:
        answer.close()
        connection.close()


def events(answer: http.client.HTTPResponse, count: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = [{}]
    while len(found) <= count:
        line = answer.readline().decode().rstrip("\n")
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            found[-1][name] = value
        elif found[-1]:
            found.append({})
    return found[:-1]


def test_snapshots_are_sent_about_twice_a_second() -> None:
    with elastic.api.serve(PaperJob()) as server, request(server, "jobs/words/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        began = time.monotonic()
        history, *snapshots = events(answer, 5)
        assert 1.0 < time.monotonic() - began < 6.0
    assert history["event"] == "history"
    assert {event["event"] for event in snapshots} == {"snapshot"}
    sent = [json.loads(event["data"]) for event in snapshots]
    assert [one["id"] for one in sent] == [int(event["id"]) for event in snapshots]
    assert [one["id"] for one in sent] == list(range(sent[0]["id"], sent[0]["id"] + 4))


def test_a_client_that_reconnects_gets_the_responses_it_missed() -> None:
    with elastic.api.serve([PaperJob()]) as server:
        with request(server, "jobs/words/events") as answer:
            events(answer, 4)
        with request(server, "jobs/words/events", **{"Last-Event-ID": "2"}) as answer:
            missed = json.loads(events(answer, 1)[0]["data"])["responses"]
        with request(server, "jobs/words/events", **{"Last-Event-ID": "nonsense"}) as answer:
            everything = json.loads(events(answer, 1)[0]["data"])["responses"]
    assert missed[0]["id"] == 3
    assert everything[0]["id"] == 1


def test_listeners_are_limited_and_free_their_place_when_they_disconnect() -> None:
    with elastic.api.serve(PaperJob()) as server:
        streams = [request(server, "jobs/words/events") for _ in range(MAX_LISTENERS)]
        for stream in streams:
            assert stream.__enter__().status == 200
        with request(server, "jobs/words/events") as refused:
            assert refused.status == 503
            assert json.loads(refused.read())["type"] == "urn:elastic:TooManyListeners"
        for stream in streams:
            stream.__exit__(None, None, None)
        ends = time.monotonic() + 10
        while server._app.state.listeners.count and time.monotonic() < ends:
            time.sleep(0.05)
        with request(server, "jobs/words/events") as answer:
            assert answer.status == 200


def test_a_server_that_stops_closes_its_streams_at_once() -> None:
    server = elastic.api.serve(PaperJob())
    with request(server, "jobs/words/events") as answer:
        events(answer, 1)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 4
        while answer.readline():
            pass
    with pytest.raises(ConnectionError), request(server, "health"):
        pass


def test_a_port_in_use_is_refused_and_can_be_bound_after_a_stop() -> None:
    with elastic.api.serve(PaperJob()) as server:
        port = urlsplit(server.url).port
        assert port is not None
        with pytest.raises(CannotListen, match="Use another port"):
            elastic.api.serve(PaperJob(), port=port)
    with elastic.api.serve(PaperJob(), port=port) as again:
        assert again.url == server.url
    for bad in (70_000, -1):
        with pytest.raises(CannotListen):
            elastic.api.serve(PaperJob(), port=bad)


def test_a_server_beyond_loopback_needs_a_token() -> None:
    with pytest.raises(TokenRequired):
        elastic.api.serve(PaperJob(), host="0.0.0.0")  # noqa: S104


def test_jobs_of_one_server_have_different_names() -> None:
    with pytest.raises(JobNameInUse):
        elastic.api.serve([PaperJob(), PaperJob()])


def test_the_repr_of_a_server_does_not_contain_its_token() -> None:
    with elastic.api.serve(PaperJob()) as server:
        assert server.token not in f"{server!r} {vars(server)}"


def test_a_server_on_an_ipv6_address_has_a_valid_url() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        server = elastic.api.serve(PaperJob(), host="::1")
    except CannotListen:
        pytest.skip("this machine has no IPv6 loopback")
    with server, request(server, "health") as answer:
        assert server.url.startswith("http://[::1]:")
        assert answer.status == 200
