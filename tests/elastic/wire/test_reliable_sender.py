"""A reliable channel: documents in order, each until it is acknowledged, and nothing after a refusal."""

import threading
from typing import Any

import pytest

from elastic.wire import PeerUnavailable, Refused, ReliableSender
from tests.elastic.node.states import wait_until


class ScriptedPeer:
    """Answers each call as the script says, then always; remembers what it received."""

    address = "peer:1"

    def __init__(self, *script: Exception | None) -> None:
        self.script = list(script)
        self.received: list[Any] = []

    def call(self, action: str, document: dict[str, Any]) -> str:
        assert action == "report"
        error = self.script.pop(0) if self.script else None
        self.received.append((document.get("number"), document["kind"], type(error).__name__))
        if error is not None:
            raise error
        return "accepted"


class Channel:
    def __init__(self, peer: Any) -> None:
        self.refusals: list[str] = []
        self.acknowledged = 0
        self.ended = threading.Event()
        self.sender = ReliableSender(
            peer,
            "report",
            "test",
            on_refused=lambda refused: self.refusals.append(str(refused)),
            on_acknowledged=self._count,
            on_end=self.ended.set,
        )
        self.sender.start()

    def _count(self) -> None:
        self.acknowledged += 1


def absent() -> PeerUnavailable:
    return PeerUnavailable("it does not answer")


def send(channel: Channel, *kinds: str) -> None:
    for kind in kinds:
        channel.sender.send({"kind": kind})


def test_a_document_is_repeated_until_it_is_acknowledged_before_the_next_is_sent() -> None:
    peer = ScriptedPeer(None, absent(), absent())
    channel = Channel(peer)
    send(channel, "a", "b", "c")
    channel.sender.finish()
    assert channel.ended.wait(10)
    assert [(number, kind) for number, kind, _ in peer.received] == [(0, "a"), (1, "b"), (1, "b"), (1, "b"), (2, "c")]
    assert channel.acknowledged == 3


def test_after_a_refusal_nothing_more_is_sent() -> None:
    peer = ScriptedPeer(None, Refused("not that one"))
    channel = Channel(peer)
    send(channel, "a", "b", "c")
    assert channel.ended.wait(10)
    assert channel.refusals == ["not that one"]
    assert [kind for _, kind, _ in peer.received] == ["a", "b"]


def test_closing_flushes_what_the_peer_accepts_and_drops_the_rest() -> None:
    peer = ScriptedPeer()
    channel = Channel(peer)
    send(channel, "a", "b")
    channel.sender.close(flush_seconds=10)
    assert [kind for _, kind, _ in peer.received] == ["a", "b"]
    deaf = ScriptedPeer(*[absent() for _ in range(1_000)])
    other = Channel(deaf)
    send(other, "a", "b")
    other.sender.close(flush_seconds=0.05)
    assert other.ended.wait(10)
    assert {kind for _, kind, _ in deaf.received} <= {"a"}
    assert not other.acknowledged


@pytest.mark.parametrize("gives_up", [True, False])
def test_a_document_that_is_delivered_now_waits_for_the_answer_or_gives_up(gives_up: bool) -> None:
    peer = ScriptedPeer(absent(), absent())
    channel = Channel(peer)
    channel.sender.deliver({"kind": "now"}, give_up=lambda: gives_up)
    assert len(peer.received) == (1 if gives_up else 3)
    assert channel.acknowledged == (0 if gives_up else 1)
    channel.sender.close()


def test_a_document_that_is_tried_once_is_not_repeated() -> None:
    peer = ScriptedPeer(absent(), None, Refused("no"))
    channel = Channel(peer)
    assert [channel.sender.try_once({"kind": kind}) for kind in "abc"] == [False, True, True]
    assert channel.refusals == ["no"]
    assert len(peer.received) == 3
    channel.sender.close()


def test_a_closed_sender_calls_the_peer_no_more() -> None:
    peer = ScriptedPeer()
    channel = Channel(peer)
    channel.sender.close()
    assert channel.ended.wait(10)
    send(channel, "a")
    channel.sender.deliver({"kind": "b"})
    assert not channel.sender.try_once({"kind": "c"})
    assert peer.received == []


def test_a_slow_peer_does_not_delay_the_callers() -> None:
    go = threading.Event()

    class SlowPeer(ScriptedPeer):
        def call(self, action: str, document: dict[str, Any]) -> str:
            assert go.wait(10)
            return super().call(action, document)

    peer = SlowPeer()
    channel = Channel(peer)
    send(channel, "a", "b")  # returns at once
    go.set()
    wait_until(lambda: channel.acknowledged == 2)
    channel.sender.close()
