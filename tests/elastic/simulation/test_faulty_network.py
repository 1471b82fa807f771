"""The network of a simulated world: what it does to calls, and what it must not do."""

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from elastic import threads
from elastic.wire import PeerUnavailable, Refused
from tests.elastic.simulation.faults import Faults
from tests.elastic.simulation.network import FaultyNetwork
from tests.elastic.simulation.scheduler import Process, Scheduler

_TOKEN = "a token"  # noqa: S105


def play(faults: Faults, body: Callable[[Scheduler, FaultyNetwork, Any, list[int]], object]) -> None:
    """Run `body` with a peer of an endpoint in another process, and the numbers that it has heard."""
    chance = random.Random(1)  # noqa: S311
    scheduler = Scheduler(chance)
    network = FaultyNetwork(scheduler, chance, lambda: faults, lambda *_: None)
    heard: list[int] = []

    def hear(document: dict[str, Any]) -> int:
        assert scheduler.process.name == "listener"
        if document["number"] < 0:
            raise Refused("not that")
        heard.append(document["number"])
        return 2 * int(document["number"])

    def world() -> None:
        endpoints: list[Any] = []
        listener = Process("listener")
        scheduler.spawn(lambda: endpoints.append(network.listen("", _TOKEN, {"hear": hear})), "main", listener).join()
        body(scheduler, network, network.connect(endpoints[0].address, _TOKEN), heard)

    scheduler.run(world)


QUIET = Faults(lost=0, lost_answer=0, late=0, slow=0)


def test_a_call_is_answered_by_the_process_that_listens_and_takes_time() -> None:
    def body(scheduler: Scheduler, _network: FaultyNetwork, peer: Any, heard: list[int]) -> None:
        assert peer.call("hear", {"number": 4}) == 8
        assert heard == [4]
        assert 0 < scheduler.now < 0.1
        with pytest.raises(Refused, match="not that"):
            peer.call("hear", {"number": -1})

    play(QUIET, body)


def test_calls_get_lost_before_or_after_their_delivery_or_come_late() -> None:
    def body(scheduler: Scheduler, _network: FaultyNetwork, peer: Any, heard: list[int]) -> None:
        outcomes: Counter[tuple[bool, bool]] = Counter()
        for number in range(400):
            try:
                peer.call("hear", {"number": number})
            except PeerUnavailable:
                outcomes[False, number in heard] += 1
            else:
                outcomes[True, number in heard] += 1
        scheduler.sleep(60.0)
        assert heard != sorted(heard)  # some came late
        assert len(heard) == len(set(heard))
        assert outcomes[True, False] == 0
        assert min(outcomes[True, True], outcomes[False, True], outcomes[False, False]) > 5

    play(Faults(lost=0.1, lost_answer=0.1, late=0.1), body)


def test_a_process_that_is_cut_off_hears_nothing_until_it_is_joined_again() -> None:
    def body(scheduler: Scheduler, network: FaultyNetwork, peer: Any, heard: list[int]) -> None:
        listener = network._owners[peer.address]
        network.cut_off.add(listener)
        with pytest.raises(PeerUnavailable, match="cut off"):
            peer.call("hear", {"number": 1}, timeout=5.0)
        assert scheduler.now >= 5.0
        network.cut_off.discard(listener)
        peer.call("hear", {"number": 2})
        assert heard == [2]

    play(QUIET, body)


def test_a_killed_process_is_unavailable() -> None:
    def body(scheduler: Scheduler, network: FaultyNetwork, peer: Any, heard: list[int]) -> None:
        scheduler.kill(network._owners[peer.address])
        with pytest.raises(PeerUnavailable):
            peer.call("hear", {"number": 1})
        assert heard == []

    play(QUIET, body)


def hold(death: Callable[[Scheduler, FaultyNetwork, Process], object]) -> tuple[list[float], list[bool]]:
    """Return when held calls broke after `death`, in many worlds, and whether their process was gone then."""
    broke: list[float] = []
    gone: list[bool] = []
    for seed in range(40):
        chance = random.Random(seed)  # noqa: S311
        scheduler = Scheduler(chance)
        network = FaultyNetwork(scheduler, chance, lambda: QUIET, lambda *_: None)
        with threads.replaced_by(scheduler):
            scheduler.run(partial(_hold_one, scheduler, network, death, broke, gone))
    return broke, gone


def _hold_one(
    scheduler: Scheduler,
    network: FaultyNetwork,
    death: Callable[[Scheduler, FaultyNetwork, Process], object],
    broke: list[float],
    gone: list[bool],
) -> None:
    owner, endpoints, left = Process("listener"), list[Any](), threads.Event()

    def listen() -> None:
        endpoints.append(network.listen("", _TOKEN, {}, hold=lambda _: left))

    scheduler.spawn(listen, "main", owner).join()
    peer = network.connect(endpoints[0].address, _TOKEN)
    holding = peer.hold({})
    began = scheduler.now
    scheduler.spawn(lambda: death(scheduler, network, owner), "death", scheduler.world)
    with pytest.raises(PeerUnavailable):
        holding.wait()
    broke.append(scheduler.now - began)
    gone.append(peer.is_gone(1.0))


def test_the_death_of_a_process_breaks_its_held_call_at_once_or_late() -> None:
    broke, gone = hold(lambda scheduler, _network, owner: scheduler.kill(owner))
    assert all(gone)
    assert min(broke) < 0.1
    assert max(broke) >= 30.0


def test_a_held_call_breaks_now_and_then_although_both_ends_live() -> None:
    broke, gone = hold(lambda *_: None)
    assert not any(gone)
    assert 5.0 < sum(broke) / len(broke) < 60.0


def test_nobody_knows_whether_a_process_that_is_cut_off_is_gone() -> None:
    def vanish(scheduler: Scheduler, network: FaultyNetwork, owner: Process) -> None:
        network.cut_off.add(owner)
        scheduler.kill(owner, silently=True)

    _, gone = hold(vanish)
    assert not any(gone)
