"""When the driver takes a node for dead by its connection, and when it must not."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from elastic import threads
from elastic.driver.liveness import ConnectionWatch
from elastic.wire import PeerUnavailable, Refused
from tests.elastic.driver.local_job import start_local_job, until

BROKEN = PeerUnavailable("the connection broke")


class ScriptedPeer:
    """Answers `hold` as the script says: an error when it is opened, or how an open call ends."""

    def __init__(self, *script: Any, gone: Callable[[int], bool] = lambda _: False) -> None:
        self.script = list(script)
        self.held: list[dict[str, Any]] = []
        self.probes = 0
        self.closed = threads.Event()
        self._gone = gone

    def hold(self, document: dict[str, Any]) -> Any:
        self.held.append(document)
        step = self.script.pop(0) if self.script else self.closed
        if isinstance(step, Exception):
            raise step
        return self if step == "open" else _Ending(step, self.closed)

    def is_gone(self, _timeout: float) -> bool:
        self.probes += 1
        return self._gone(self.probes)


class _Ending:
    def __init__(self, end: Any, closed: Any) -> None:
        self._end = end
        self._closed = closed

    def wait(self) -> None:
        if self._end is self._closed:
            assert self._closed.wait(20)
            raise BROKEN
        if self._end == "breaks":
            raise BROKEN

    def close(self) -> None:
        self._closed.set()


@pytest.fixture
def deaths() -> list[str]:
    return []


@pytest.fixture
def watch(deaths: list[str]) -> Iterator[Callable[[Any], ConnectionWatch]]:
    started: list[ConnectionWatch] = []

    def start(peer: Any) -> ConnectionWatch:
        watch = ConnectionWatch(peer, "node-1.1", deaths.append, longest_pause_seconds=0.01)
        watch.start()
        started.append(watch)
        return watch

    yield start
    for one in started:
        one.close()
        one._thread.join(20)
        assert not one._thread.is_alive()


def ended(watch: ConnectionWatch) -> None:
    watch._thread.join(20)
    assert not watch._thread.is_alive()


def test_a_broken_connection_to_an_address_where_nothing_listens_is_a_death(watch: Any, deaths: list[str]) -> None:
    peer = ScriptedPeer("breaks", gone=lambda _: True)
    ended(watch(peer))
    assert len(deaths) == 1
    assert peer.held == [{"incarnation": "node-1.1"}]


def test_a_process_that_closes_its_port_after_its_connection_is_dead_all_the_same(
    watch: Any, deaths: list[str]
) -> None:
    peer = ScriptedPeer("breaks", BROKEN, BROKEN, gone=lambda probes: probes == 3)
    ended(watch(peer))
    assert len(deaths) == 1
    assert peer.probes == 3


def test_a_connection_that_is_reset_while_the_node_lives_is_opened_again(watch: Any, deaths: list[str]) -> None:
    peer = ScriptedPeer("breaks", "breaks", "breaks")
    watch(peer)
    until(lambda: len(peer.held) == 4, "the fourth connection")
    assert peer.probes == 3
    assert deaths == []


def test_a_node_that_leaves_on_purpose_is_no_death(watch: Any, deaths: list[str]) -> None:
    peer = ScriptedPeer("leaves", gone=lambda _: True)
    ended(watch(peer))
    assert deaths == []
    assert peer.probes == 0


def test_an_address_that_was_never_reached_is_no_death(watch: Any, deaths: list[str]) -> None:
    peer = ScriptedPeer(BROKEN, BROKEN, gone=lambda _: True)
    watch(peer)
    until(lambda: len(peer.held) == 3, "the third attempt")
    assert deaths == []
    assert peer.probes == 0


def test_another_incarnation_at_the_address_is_neither_watched_nor_a_death(watch: Any, deaths: list[str]) -> None:
    peer = ScriptedPeer(Refused("node-2.1 listens here"), gone=lambda _: True)
    ended(watch(peer))
    assert deaths == []


def test_the_drivers_own_close_is_no_death(watch: Any, deaths: list[str]) -> None:
    peer = ScriptedPeer(gone=lambda _: True)
    one = watch(peer)
    until(lambda: one._holding is not None, "the connection")
    one.close()
    ended(one)
    assert deaths == []


def test_a_node_that_dies_is_lost_by_its_connection_before_its_launcher_says_so() -> None:
    local = start_local_job(nodes=2)
    try:
        local.send(1, 2, 3, 4)
        local.job.process_all_available()
        victim: Any = next(iter(local.launcher.incarnations.values()))
        victim.process._left.clear()
        victim.process._endpoint.close()  # all that the driver can see of a death; the launcher does not notice
        until(lambda: local.status().losses == 1, "the loss")
        assert "its connection broke" in str(local.job.story())
        local.send(1, 2, 3, 4)
        local.job.process_all_available()
        assert [local.job.state(key) for key in (1, 2, 3, 4)] == [2, 2, 2, 2]
        assert local.status().losses == 1
    finally:
        local.close()


def test_a_job_that_stops_loses_no_node() -> None:
    local = start_local_job(nodes=3)
    local.send(1)
    local.job.process_all_available()
    local.job.stop()
    assert local.status().losses == 0
    assert "NodeLost" not in str(local.job.story())


class _Waits:
    """Stands for the event that ends a watch: notes how long the watch would have waited."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def is_set(self) -> bool:
        return False

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        return False


def test_pauses_between_attempts_double_up_to_the_longest_and_are_short_again_after_a_connection() -> None:
    away = PeerUnavailable("nobody answers")
    peer: Any = ScriptedPeer(away, away, away, away, "breaks", away, Refused("another incarnation"))
    watch = ConnectionWatch(peer, "node-1.1", lambda _: None, longest_pause_seconds=0.016)
    waits: Any = _Waits()
    watch._closing = waits
    watch._watch()
    assert waits.pauses == [0.005, 0.01, 0.016, 0.016, 0.005, 0.01]
