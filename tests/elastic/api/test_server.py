"""The server itself: a socket, a thread, event streams."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

import elastic.api
from elastic.api.errors import CannotListen, OpenToAll
from elastic.api.routes.following import MOST_LISTENERS
from elastic.api.server import Server
from elastic.errors import NameTaken
from tests.elastic.api.paper_job import PaperJob


@contextmanager
def asking(server: Server, path: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
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
    told: list[dict[str, str]] = [{}]
    while len(told) <= count:
        line = answer.readline().decode().rstrip("\n")
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            told[-1][name] = value
        elif told[-1]:
            told.append({})
    return told[:-1]


def test_snapshots_come_about_twice_a_second() -> None:
    with elastic.api.serve(PaperJob()) as server, asking(server, "jobs/words/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        began = time.monotonic()
        history, *snapshots = events(answer, 5)
        assert 1.0 < time.monotonic() - began < 6.0
    assert history["event"] == "history"
    assert {event["event"] for event in snapshots} == {"snapshot"}
    told = [json.loads(event["data"]) for event in snapshots]
    assert [one["id"] for one in told] == [int(event["id"]) for event in snapshots]
    assert [one["id"] for one in told] == list(range(told[0]["id"], told[0]["id"] + 4))


def test_who_comes_back_hears_what_was_missed() -> None:
    with elastic.api.serve([PaperJob()]) as server:
        with asking(server, "jobs/words/events") as answer:
            events(answer, 4)
        with asking(server, "jobs/words/events", **{"Last-Event-ID": "2"}) as answer:
            missed = json.loads(events(answer, 1)[0]["data"])["responses"]
        with asking(server, "jobs/words/events", **{"Last-Event-ID": "nonsense"}) as answer:
            everything = json.loads(events(answer, 1)[0]["data"])["responses"]
    assert missed[0]["id"] == 3
    assert everything[0]["id"] == 1


def test_listeners_are_bounded_and_leave_room_when_they_go() -> None:
    with elastic.api.serve(PaperJob()) as server:
        streams = [asking(server, "jobs/words/events") for _ in range(MOST_LISTENERS)]
        for stream in streams:
            assert stream.__enter__().status == 200
        with asking(server, "jobs/words/events") as refused:
            assert refused.status == 503
            assert json.loads(refused.read())["type"] == "urn:elastic:TooManyListeners"
        for stream in streams:
            stream.__exit__(None, None, None)
        ends = time.monotonic() + 10
        while server._app.state.listeners.count and time.monotonic() < ends:
            time.sleep(0.05)
        with asking(server, "jobs/words/events") as answer:
            assert answer.status == 200


def test_a_server_that_stops_ends_its_streams_at_once() -> None:
    server = elastic.api.serve(PaperJob())
    with asking(server, "jobs/words/events") as answer:
        events(answer, 1)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 4
        while answer.readline():
            pass
    with pytest.raises(ConnectionError), asking(server, "health"):
        pass


def test_the_port_is_free_again_and_a_taken_one_is_refused() -> None:
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


def test_nothing_is_opened_to_the_network_without_a_token() -> None:
    with pytest.raises(OpenToAll):
        elastic.api.serve(PaperJob(), host="0.0.0.0")  # noqa: S104


def test_jobs_of_one_server_have_names_of_their_own() -> None:
    with pytest.raises(NameTaken):
        elastic.api.serve([PaperJob(), PaperJob()])


def test_a_server_does_not_show_its_token() -> None:
    with elastic.api.serve(PaperJob()) as server:
        assert server.token not in f"{server!r} {vars(server)}"


def test_the_url_of_an_ipv6_address_is_one() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        server = elastic.api.serve(PaperJob(), host="::1")
    except CannotListen:
        pytest.skip("no IPv6 loopback here")
    with server, asking(server, "health") as answer:
        assert server.url.startswith("http://[::1]:")
        assert answer.status == 200
