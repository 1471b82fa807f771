"""Calls between processes: who may call, what arrives, and the two ways in which a call fails, on every network."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from elastic import errors
from elastic.local import LocalNetwork
from elastic.wire import Endpoint, FlightNetwork, Network, Peer, PeerUnavailable, Refused, wire_token
from elastic.wire.failures import failure_from_json, failure_to_json
from elastic.wire.signing import seal, unseal
from storage import Secret
from storage.errors import ForeignObject

TOKEN = wire_token(Secret.of("a secret for the wire"), "life 1")
uploads: list[tuple[dict[str, Any], pa.Table]] = []


NETWORKS: dict[str, Callable[[], Network]] = {"flight": FlightNetwork, "local": LocalNetwork}


def refuse(_: dict[str, Any]) -> None:
    raise Refused("not today")


def fail(_: dict[str, Any]) -> None:
    raise KeyError("a mistake")


def download(header: dict[str, Any]) -> bytes:
    if header["size"] < 0:
        raise Refused("not that")
    return bytes(range(256)) * int(header["size"] // 256)


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> Network:
    return NETWORKS[request.param]()


@pytest.fixture
def endpoint(network: Network) -> Iterator[Endpoint]:
    uploads.clear()
    endpoint = network.listen(
        "127.0.0.1",
        TOKEN,
        {"echo": lambda document: document, "refuse": refuse, "fail": fail},
        lambda header, table: uploads.append((header, table)),
        download,
    )
    yield endpoint
    endpoint.close()


@pytest.fixture
def peer(network: Network, endpoint: Endpoint) -> Iterator[Peer]:
    peer = network.connect(endpoint.address, TOKEN)
    yield peer
    peer.close()


def test_a_call_is_answered(peer: Peer) -> None:
    assert peer.call("echo", {"task": 3, "text": "ü"}) == {"task": 3, "text": "ü"}


def test_rows_arrive_as_they_were_sent(peer: Peer) -> None:
    table = pa.table({"key": ["a", "b"], "n": [1, 2]})
    peer.upload({"slots": [1]}, table)
    peer.upload({"slots": []}, table.slice(0, 0))
    assert uploads == [({"slots": [1]}, table), ({"slots": []}, table.slice(0, 0))]


@pytest.mark.parametrize("size", [0, 256, 9 << 20])
def test_bytes_of_any_size_arrive_unchanged(peer: Peer, size: int) -> None:
    data = peer.download({"size": size}, size)
    assert bytes(data) == bytes(range(256)) * (size // 256)


def test_a_download_of_another_size_than_promised_fails(peer: Peer) -> None:
    for promised in (255, 257):
        with pytest.raises(PeerUnavailable, match="received"):
            peer.download({"size": 256}, promised)
    with pytest.raises(Refused, match="not that"):
        peer.download({"size": -1}, 1)


def test_a_caller_without_the_token_is_refused(network: Network, endpoint: Endpoint) -> None:
    stranger = network.connect(endpoint.address, wire_token(Secret.of("a secret for the wire"), "life 2"))
    with pytest.raises(PeerUnavailable, match="no valid token"):
        stranger.call("echo", {})
    with pytest.raises(PeerUnavailable, match="no valid token"):
        stranger.upload({}, pa.table({"key": ["a"]}))
    with pytest.raises(PeerUnavailable, match="no valid token"):
        stranger.download({"size": 256}, 256)
    assert not uploads
    stranger.close()


def test_a_refusal_differs_from_an_unavailable_peer(peer: Peer) -> None:
    with pytest.raises(Refused, match="not today"):
        peer.call("refuse", {})
    with pytest.raises(Refused, match="no action"):
        peer.call("unheard of", {})
    with pytest.raises(Refused, match="KeyError: 'a mistake'"):
        peer.call("fail", {})


def test_an_answer_is_a_copy_as_json_makes_it(peer: Peer) -> None:
    document = {"numbers": (1, 2)}
    answer = peer.call("echo", document)
    assert answer == {"numbers": [1, 2]}
    assert answer is not document


def test_a_closed_endpoint_is_unavailable(endpoint: Endpoint, peer: Peer) -> None:
    peer.call("echo", {})
    endpoint.close()
    with pytest.raises(PeerUnavailable):
        peer.call("echo", {}, timeout=2.0)


def test_a_typed_error_is_the_same_after_its_way_through_json() -> None:
    error = errors.OperatorFailed("Count", 7, 12, "ValueError: no", row='{"key": 1}')
    back = failure_from_json(failure_to_json(error))
    assert type(back) is errors.OperatorFailed
    assert str(back) == str(error)
    assert vars(back) == vars(error)


def test_an_error_that_is_not_the_engines_own_becomes_an_elastic_error_with_its_name() -> None:
    back = failure_from_json(failure_to_json(KeyError("word")))
    assert type(back) is errors.ElasticError
    assert str(back) == "KeyError: 'word'"


def test_a_value_that_another_secret_signed_is_refused() -> None:
    mine, other = Secret.of("a secret for the wire"), Secret.of("another one, just as long")
    assert unseal(seal({"n": (1, None)}, mine), mine) == {"n": (1, None)}
    with pytest.raises(ForeignObject):
        unseal(seal(1, other), mine)


# Calls that are held open.


class Owner:
    """The process behind an endpoint."""

    def __init__(self) -> None:
        self.left = threading.Event()

    def hold(self, document: dict[str, Any]) -> threading.Event:
        if document["incarnation"] != "node-1.1":
            raise Refused("not that one")
        return self.left


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def held(network: Network, owner: Owner) -> Iterator[Endpoint]:
    endpoint = network.listen("127.0.0.1", TOKEN, {"echo": lambda document: document}, hold=owner.hold)
    yield endpoint
    endpoint.close()


MINE = {"incarnation": "node-1.1"}


def test_a_held_call_ends_well_when_the_owner_leaves(network: Network, held: Endpoint, owner: Owner) -> None:
    peer = network.connect(held.address, TOKEN)
    holding = peer.hold(MINE)
    peer.call("echo", {})  # other calls go on meanwhile
    owner.left.set()
    held.close()
    holding.wait()
    peer.close()


def test_a_held_call_breaks_when_the_endpoint_closes_before_its_owner_leaves(network: Network, held: Endpoint) -> None:
    peer = network.connect(held.address, TOKEN)
    holding = peer.hold(MINE)
    assert not peer.is_gone()
    held.close()
    with pytest.raises(PeerUnavailable):
        holding.wait()
    assert peer.is_gone()
    with pytest.raises(PeerUnavailable):
        peer.hold(MINE)
    peer.close()


def test_the_holder_can_end_a_held_call(network: Network, held: Endpoint) -> None:
    peer = network.connect(held.address, TOKEN)
    holding = peer.hold(MINE)
    threading.Timer(0.05, holding.close).start()
    with pytest.raises(PeerUnavailable):
        holding.wait()
    assert not peer.is_gone()
    peer.close()


def test_a_held_call_needs_the_token_and_the_incarnation(network: Network, held: Endpoint, endpoint: Endpoint) -> None:
    peer, stranger = network.connect(held.address, TOKEN), network.connect(held.address, "another token")
    with pytest.raises(Refused, match="not that one"):
        peer.hold({"incarnation": "node-1.2"})
    with pytest.raises(PeerUnavailable, match="no valid token"):
        stranger.hold(MINE)
    other = network.connect(endpoint.address, TOKEN)
    with pytest.raises(Refused, match="no calls are held"):
        other.hold(MINE)
    for one in (peer, stranger, other):
        one.close()


@pytest.mark.parametrize(
    ("error", "gone"),
    [
        (ConnectionRefusedError(), True),
        (TimeoutError(), False),
        (ConnectionResetError(), False),
        (OSError(113, "No route to host"), False),
    ],
)
def test_only_a_refused_connection_proves_that_no_process_listens(
    monkeypatch: pytest.MonkeyPatch, error: OSError, gone: bool
) -> None:
    def connect(address: tuple[str, int], timeout: float) -> None:
        assert (address, timeout) == (("::1", 9), 0.5)
        raise error

    peer = FlightNetwork().connect("[::1]:9", TOKEN)
    monkeypatch.setattr(socket, "create_connection", connect)
    assert peer.is_gone(timeout=0.5) is gone
    peer.close()
