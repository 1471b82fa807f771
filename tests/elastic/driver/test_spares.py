"""Spares: processes that wait for a name, and take that of a lost node, or of a node of a scale-out."""

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from elastic import threads
from elastic.core.messages import SpareReady
from elastic.driver.driver import Driver
from elastic.driver.launcher import Ended
from elastic.driver.spares import Spares
from elastic.local import LocalNetwork
from elastic.wire import Refused
from tests.elastic.driver.fatal_operators import FatalSums
from tests.elastic.driver.local_job import run_processes, start_local_job, until
from tests.elastic.driver.parts import make_context


class Bench:
    """Spares over a launcher that starts nothing; the test plays the processes."""

    def __init__(self, wanted: int) -> None:
        self.network = LocalNetwork()
        self.context = make_context(self.network, spares=wanted, node_timeout_seconds=10.0)
        self.started: list[tuple[str, str]] = []
        self.cancelled: list[str] = []
        self.callbacks: dict[str, Ended] = {}
        self.changes: list[int] = []
        self.ended: list[tuple[Any, ...]] = []
        self.became: list[dict[str, Any]] = []
        self.refuses = False
        self.spares = Spares(self.context, self, self.changes.append)
        self.endpoints: dict[str, Any] = {}

    def start(self, node: str, incarnation: str, _driver: str, ended: Ended) -> None:
        self.started.append((node, incarnation))
        self.callbacks[incarnation] = ended

    def cancel(self, incarnation: str) -> None:
        self.cancelled.append(incarnation)

    def wait(self, incarnations: Sequence[str], _seconds: float) -> list[str]:
        return list(incarnations)

    def get_ready(self, name: str) -> None:
        self.endpoints[name] = self.network.listen("", "token", {"become": self._become})
        self.spares.note(SpareReady("", name, self.endpoints[name].address))

    def _become(self, document: dict[str, Any]) -> str:
        if self.refuses:
            raise Refused("it leaves")
        self.became.append(document)
        return "accepted"

    def launch(self, node: str, incarnation: str) -> None:
        self.spares.start(node, incarnation, "driver", lambda *end: self.ended.append(end))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    clock = [1_000.0]
    monkeypatch.setattr(threads, "monotonic", lambda: clock[0])
    bench = Bench(1)
    bench.clock = clock  # type: ignore[attr-defined]
    return bench


def test_there_are_as_many_spares_as_wanted_and_each_that_is_used_is_replaced(bench: Bench) -> None:
    for _ in range(3):
        bench.spares.replenish("driver")
    assert bench.started == [("", "spare-1")]
    bench.get_ready("spare-1")
    bench.launch("node-1", "node-1.2")
    until(lambda: bench.became, "the name")
    bench.spares.replenish("driver")
    assert bench.started == [("", "spare-1"), ("", "spare-2")]
    assert bench.changes == [1, 0]


def test_an_incarnation_is_given_to_a_ready_spare_and_else_started(bench: Bench) -> None:
    bench.spares.replenish("driver")
    bench.launch("node-1", "node-1.2")  # the spare is not ready yet
    assert bench.started[-1] == ("node-1", "node-1.2")
    bench.get_ready("spare-1")
    bench.launch("node-2", "node-2.2")
    until(lambda: bench.became == [{"node": "node-2", "incarnation": "node-2.2"}], "the name")
    bench.launch("node-3", "node-3.2")
    assert bench.started[-1] == ("node-3", "node-3.2")


def test_the_launcher_knows_an_incarnation_by_the_spare_that_became_it(bench: Bench) -> None:
    bench.spares.replenish("driver")
    bench.get_ready("spare-1")
    bench.launch("node-1", "node-1.2")
    bench.spares.cancel("node-1.2")
    bench.spares.cancel("node-2.1")
    assert bench.cancelled == ["spare-1", "node-2.1"]
    assert bench.spares.wait(["node-1.2", "node-2.1"], 0) == ["node-1.2", "node-2.1"]
    bench.callbacks["spare-1"]("", "spare-1", "its process died", False)
    assert bench.ended == [("node-1", "node-1.2", "its process died", False)]


def test_an_incarnation_whose_spare_does_not_answer_is_over_and_never_started_again(bench: Bench) -> None:
    bench.spares.replenish("driver")
    bench.get_ready("spare-1")
    bench.refuses = True
    bench.launch("node-1", "node-1.2")
    until(lambda: bench.ended, "the end")
    [(node, incarnation, reason, failed)] = bench.ended
    assert (node, incarnation, failed) == ("node-1", "node-1.2", False)
    assert "did not take the name" in reason
    assert bench.cancelled == ["spare-1"]
    assert bench.started == [("", "spare-1")]
    with pytest.raises(Refused, match="not a spare"):  # it never got its name, and waits: now it learns to leave
        bench.spares.note(SpareReady("", "spare-1", bench.endpoints["spare-1"].address))
    bench.callbacks["spare-1"]("", "spare-1", "its process died", False)
    assert len(bench.ended) == 1


def test_a_spare_that_dies_or_falls_silent_is_replaced(bench: Any) -> None:
    bench.spares.replenish("driver")
    bench.get_ready("spare-1")
    bench.callbacks["spare-1"]("", "spare-1", "its process died", False)
    assert bench.ended == []
    bench.spares.replenish("driver")
    bench.get_ready("spare-2")
    bench.clock[0] += 9.0
    bench.spares.note(SpareReady("", "spare-2", bench.endpoints["spare-2"].address))
    bench.clock[0] += 9.0
    bench.spares.replenish("driver")
    assert bench.cancelled == []
    bench.clock[0] += 2.0
    bench.spares.replenish("driver")
    assert bench.cancelled == ["spare-2"]
    assert [name for _, name in bench.started] == ["spare-1", "spare-2", "spare-3"]
    with pytest.raises(Refused):
        bench.spares.note(SpareReady("", "spare-2", "x"))
    assert bench.spares.ready == 0


def test_a_driver_that_was_suspended_does_not_replace_its_spares(bench: Any) -> None:
    bench.spares.replenish("driver")
    bench.get_ready("spare-1")
    bench.clock[0] += 12.0
    bench.spares.replenish("driver", 12.0)
    assert bench.cancelled == []


def test_a_process_that_the_driver_did_not_start_is_no_spare(bench: Bench) -> None:
    with pytest.raises(Refused, match="not a spare"):
        bench.spares.note(SpareReady("", "spare-1", "local:9"))
    bench.launch("node-1", "node-1.2")
    assert bench.started == [("node-1", "node-1.2")]


def test_a_late_heartbeat_of_a_spare_that_has_a_name_is_ignored(bench: Bench) -> None:
    bench.spares.replenish("driver")
    bench.get_ready("spare-1")
    bench.launch("node-1", "node-1.2")
    until(lambda: bench.became, "the name")
    bench.spares.note(SpareReady("", "spare-1", bench.endpoints["spare-1"].address))
    bench.launch("node-1", "node-1.3")
    assert bench.started[-1] == ("node-1", "node-1.3")


def test_no_spare_is_started_after_the_end(bench: Bench) -> None:
    bench.spares.close(0)
    bench.spares.replenish("driver")
    assert bench.started == []


def test_a_lost_node_is_replaced_by_a_spare_and_nothing_is_lost_or_counted_twice() -> None:
    local = start_local_job(nodes=2, spares=1)
    try:
        for kill in range(1, 6):
            local.send(1, 2, 3, 4)
            local.job.process_all_available()
            until(lambda: local.status().spares == 1, "a spare")
            before = set(local.launcher.incarnations)
            name = local.driver.view.nodes[0].incarnation
            spare = next(
                (one for one, named in local.driver.links._spares._named.items() if named.incarnation == name), name
            )
            local.launcher.end(local.launcher.incarnations[spare])
            until(lambda kill=kill: len(local.status().recoveries) == kill, "the recovery")  # type: ignore[misc]
            started = set(local.launcher.incarnations) - before
            assert all(one.startswith("spare-") for one in started), started  # only spares were started
        local.send(1, 2, 3, 4)
        local.job.process_all_available()
        assert [local.job.state(key) for key in (1, 2, 3, 4)] == [6, 6, 6, 6]
        assert local.status().losses == 5
    finally:
        local.close()
    assert all(one.over.wait(20) for one in local.launcher.incarnations.values())  # spares leave with the job


def test_a_scale_out_takes_the_spares_and_then_starts_nodes() -> None:
    local = start_local_job(nodes=2, tasks=8, spares=1)
    try:
        local.send(*range(20))
        local.job.process_all_available()
        until(lambda: local.status().spares == 1, "a spare")
        local.driver.add_nodes(["node-3", "node-4"], 20)
        names = {named.node for named in local.driver.links._spares._named.values()}
        assert names == {"node-3"}
        local.send(*range(20))
        local.job.process_all_available()
        assert [local.job.state(key) for key in range(20)] == [2] * 20
    finally:
        local.close()


def test_no_spare_is_started_while_tasks_move(monkeypatch: pytest.MonkeyPatch) -> None:
    moving = [True]
    local = start_local_job(nodes=2, tasks=8, spares=1)
    try:
        until(lambda: local.status().spares == 1, "a spare")
        monkeypatch.setattr(Driver, "view", property(lambda driver: replace(driver.views.latest, is_moving=moving[0])))
        local.driver.add_nodes(["node-3"], 20)
        launched = set(local.launcher.incarnations)
        threads.sleep(5 * local.driver._context.settings.heartbeat_seconds)
        assert set(local.launcher.incarnations) == launched
        moving[0] = False
        until(lambda: local.status().spares == 1, "another spare")
    finally:
        local.close()


def test_a_process_killed_with_kill_9_is_replaced_by_a_spare_process(tmp_path: Path) -> None:
    with run_processes(FatalSums(), tmp_path, spares=1) as local:
        batch = local.commit([("a", 1), ("b", 1)])
        local.driver.wait_until_published(batch, 30)
        until(lambda: local.status().spares == 1, "a spare")
        victim = local.driver.view.nodes[0]
        os.kill(victim.pid, signal.SIGKILL)
        batch = local.commit([("a", 1), ("b", 1)])
        local.driver.wait_until_published(batch, 30)
        assert sorted(row["sum"] for row in local.output(batch)) == [2, 2]
        assert local.status().losses == 1
        assert {one.node for one in local.driver.links._spares._named.values()} == {victim.name}
