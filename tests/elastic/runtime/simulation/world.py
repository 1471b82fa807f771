"""The world itself: time passes, batches come, processes die."""

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from elastic.results import Description, ResultLog
from elastic.routing import key_hash, split
from elastic.runtime.pipeline import runners
from elastic.runtime.protocol import Adopt, Held, Joined, events
from storage.errors import StoreUnavailable
from storage.state import LogRef, Manifest, SourceBatch
from tests.elastic.runtime.simulation.driver import Driver
from tests.elastic.runtime.simulation.faults import Faults
from tests.elastic.runtime.simulation.migrations import Migrations
from tests.elastic.runtime.simulation.node import Node
from tests.elastic.runtime.simulation.oracle import Batch, Committed, watermark_of
from tests.elastic.runtime.simulation.shared import JOB, SECRET, Shared

IN_VAIN = 30  # a message is as likely to come next as an attempt: so many attempts before it are no chance
_SERIALIZED = 0.1  # of all messages go through their JSON, as on a real wire


class World:
    """Runs `batches` through a pipeline until every result is published and every unit works."""

    def __init__(self, seed: int, pipeline: Description, batches: list[Batch], *, nodes: int, faults: Faults) -> None:
        chance = random.Random(seed)  # noqa: S311 - the world is hostile, not secret
        self.shared = Shared(chance, pipeline, faults, nodes)
        self.committed = Committed()
        self.crashes = self.stops = self.migrations = 0
        self.direct = 0  # states that came from their source
        self._batches = batches
        self._nodes: list[Node] = []
        self._in_vain: Counter[tuple[str, Held]] = Counter()  # attempts to load what only a lost source had
        self._runner = runners(pipeline, "fail")[0]
        self._spark_committed = -1
        self._is_stopping = False
        self._begin_life()

    @property
    def results(self) -> ResultLog:
        return ResultLog(self.shared.store.objects, SECRET, JOB)

    def run(self, limit: int = 30_000) -> None:
        """Until all is published and saved; migrations stop halfway through the limit so that the world can settle.

        Crashes stop at some moment before: another crash would heal what the last one broke.
        """
        chance, faults = self.shared.chance, self.shared.faults
        calm_after = chance.choice([limit // 40, limit // 20, limit // 10, limit // 2])
        for step in range(limit):
            if self._spark_committed == len(self._batches) - 1 and not self._is_busy():
                return
            if step == limit // 2:
                self.shared.faults = replace(faults, migration=0.0)
                self._migrations.stopping = None
                self._migrations.resume()
            self.shared.agenda.tick()
            kind = chance.random()
            if step < calm_after and kind < faults.controller_crash:
                self._crash_driver()
            elif step < calm_after and kind < faults.controller_crash + faults.node_crash:
                self._crash_node()
            elif step < calm_after and kind > 1 - faults.stop:
                self._stop_driver()
            else:
                self._act()
        raise AssertionError(f"the world has not come to rest; published {self._driver.coordinator.published}")

    def final_states(self) -> dict[int, Any]:
        """What the nodes that count hold in the end."""
        found = {}
        for node in self._counting():
            for slot, unit in node.host._units.items():
                if not unit.is_released:
                    assert slot not in found, f"slot {slot} works on two nodes"
                    found[slot] = unit.state
        return found

    # Lives and deaths.

    def _begin_life(self) -> None:
        """The driver is started again until the store lets it recover."""
        while True:
            with suppress(StoreUnavailable):
                self._driver = Driver(
                    self.shared,
                    self.committed,
                    start_node=self._start_node,
                    stop_node=self._stop_node,
                    send=self._send,
                    check_log=self._check_log,
                )
                break
        self._migrations = Migrations(self.shared, self._driver)
        self._is_stopping = False
        self._driver.execute(self._driver.coordinator.start())

    def _stop_driver(self) -> None:
        """Gracefully: no batch is accepted any more, and the driver ends when all is saved."""
        self._is_stopping = True
        if self._driver.is_saved:
            self.stops += 1
            self._end_driver("stops")

    def _crash_driver(self) -> None:
        self.crashes += 1
        self._end_driver("dies")

    def _end_driver(self, how: str) -> None:
        """All nodes of its life go with it; what they wrote stays, what was on its way does not arrive."""
        self.migrations += self._migrations.begun
        self.shared.tell(f"the driver {how}")
        self.shared.agenda.end_life()
        self._nodes.clear()
        self._begin_life()

    def _crash_node(self) -> None:
        living = [node for node in self._nodes if node.alive]
        if not living:
            return
        self.crashes += 1
        # Half of them where it hurts: a node that has what no other has, or waits for it, or has saved its states.
        told = self._driver.told_of_snapshot
        at_risk = [node for node in living if node.to_store or node.host.loading or node.name in told]
        node = self.shared.chance.choice(at_risk if at_risk and self.shared.happens(0.5) else living)
        self.shared.tell(f"{node.incarnation} dies")
        if self.shared.happens(0.7):
            node.alive = False  # else it is only taken for dead, and continues to send
        lost = events.NodeLost(node.name, node.incarnation, "crashed")
        self._transmit(lambda: self._driver.hear(lost))

    def _start_node(self, name: str, incarnation: str) -> None:
        node = Node(
            self.shared, name, incarnation, report=self._report, retrieve=self._retrieve, counts=self._is_counting
        )

        def join() -> None:
            self._nodes.append(node)
            self._report(node, Joined(name, incarnation, incarnation))

        self.shared.agenda.add(join)

    def _stop_node(self, incarnation: str) -> None:
        def stop() -> None:
            for node in self._nodes:
                if node.incarnation == incarnation:
                    node.alive = False

        self.shared.agenda.add(stop)

    # Messages.

    def _transmit(self, deliver: Callable[[], None], is_sending: Callable[[], bool] = lambda: True) -> None:
        self.shared.agenda.transmit(deliver, is_sending)

    def _send(self, incarnation: str, number: int, message: Any) -> None:
        if isinstance(message, Adopt):
            self._check_results(message)
        message = self._serialized(message)

        def arrive() -> None:
            for node in self._nodes:
                if node.incarnation == incarnation:
                    node.receive(number, message)

        self._transmit(arrive)

    def _report(self, node: Node, report: Any) -> None:
        report = self._serialized(report)
        self._transmit(lambda: self._driver.hear(report), is_sending=lambda: node.alive)

    def _serialized(self, message: Any) -> Any:
        if not self.shared.happens(_SERIALIZED):
            return message
        copy = type(message).from_json(json.loads(json.dumps(message.to_json())))
        assert copy == message
        return copy

    def _retrieve(self, node: Node, held: Held) -> Any:
        """A state from its source if that answers, else from the store, where only what is offered may be missing."""
        if held.state is None:
            return None
        source = next((one for one in self._nodes if one.incarnation == held.source and one.alive), None)
        if source is not None and held.state.key in source.offers and self.shared.happens(0.8):
            self.direct += 1
            return self.shared.states.load(held.state, fetch=lambda ref: source.offers[ref.key].data).state
        if self._is_counting(node) and held.state.key not in self.shared.store.objects._objects:
            self._check_patience(node, held)
        return self.shared.states.load(held.state).state

    def _check_patience(self, node: Node, held: Held) -> None:
        """A node that waits for a source that is known to be lost must soon be told."""
        assert held.source is not None, f"{held} is gone"
        if held.source not in self._driver.coordinator.roster.wanted().values():
            self._in_vain[node.incarnation, held] += 1
            assert self._in_vain[node.incarnation, held] < IN_VAIN, f"{node.incarnation} waits for {held}"

    def _check_results(self, adoption: Adopt) -> None:
        """A unit never repeats the steps that its state includes, so their results must be in the driver's hands."""
        for held in adoption.units:
            in_hand = self._driver.coordinator.batches.has_reported(held.slot, held.through)
            assert in_hand, f"{held} begins after a batch whose results may get lost"

    def _check_log(self, manifest: Manifest) -> None:
        """A unit that works takes the steps after its position from the log, so they must stay there."""
        for node in self._counting():
            for unit in node.host._working():
                done = unit.position.batch - (not unit.complete)
                assert done >= manifest.low_water_mark, f"{node.incarnation} needs the log after {unit.position}"

    # Spark's side of a batch.

    def _send_batch(self) -> None:
        driver = self._driver
        batch = self._spark_committed + 1
        if batch >= len(self._batches):
            return
        if batch <= driver.source:
            self._spark_committed = batch
            return
        if self._migrations.stopping is not None or self._is_stopping or not driver.has_room:
            return
        if self.shared.happens(self.shared.faults.tick):
            driver.accept((), None, None)
            return
        partitions = self._batches[batch]
        number = driver.coordinator.newest.batch + 1
        try:
            refs = [self._send_partition(number, *part) for part in enumerate(partitions) if part[1].num_rows]
        except StoreUnavailable:
            return  # the batch is sent again; what was logged is named by no commit
        self.shared.chance.shuffle(refs)  # as senders end
        driver.accept(tuple(refs), SourceBatch(batch), watermark_of([partitions]))

    def _send_partition(self, batch: int, partition: int, rows: pa.Table) -> LogRef:
        rows = self._runner.combined(rows)
        hashes = key_hash([rows[name] for name in self._runner.key])
        parts = split(rows, self.shared.routing.slots_of(hashes, 0))
        if self.shared.happens(self.shared.faults.duplicate):
            self.shared.log.append(batch, partition, parts.slices())  # an attempt that Spark gave up on
        ref = self.shared.log.append(batch, partition, parts.slices())
        route = self._driver.coordinator.placement.route()
        mine = parts.for_node(route)
        for node in self._counting():
            if self.shared.happens(self.shared.faults.stage):
                covered = {slot for slot in route.slots(0) if node.name in route.owners(slot)}
                node.staged[ref.nonce] = (covered, mine[node.name].slices() if node.name in mine else {})
        return ref

    # Time.

    def _act(self) -> None:
        """One random thing happens."""
        faults = self.shared.faults
        kind = self.shared.chance.random()
        if self._is_stopping and kind > 0.98:
            self._stop_driver()
        elif kind < faults.snapshot:
            self._driver.hear(events.SnapshotDue())
        elif kind < faults.snapshot + faults.collect:
            self.shared.collect()
        elif kind < faults.snapshot + faults.collect + faults.migration:
            self._migrations.go_on()
        elif kind < 0.2:
            self._send_batch()
        elif kind < 0.6 and (working := self._working()):
            self.shared.chance.choice(working).work()
        else:
            self.shared.agenda.run_one()

    def _is_busy(self) -> bool:
        """Whether a unit is missing, behind, or on its way."""
        newest = self._driver.coordinator.newest
        if self._migrations.is_under_way or self._driver.coordinator.published < newest.batch:
            return True
        held = [unit.slot for node in self._counting() if node.host.is_past(newest) for unit in node.host._working()]
        stages = range(len(self.shared.pipeline.stages))
        return sorted(held) != sorted(slot for stage in stages for slot in self.shared.routing.slots(stage))

    def _working(self) -> list[Node]:
        """Mostly those that count: there may be hundreds that were replaced and go on."""
        counting = self._counting()
        if counting and self.shared.happens(0.8):
            return counting
        return [node for node in self._nodes if node.alive]

    def _is_counting(self, node: Node) -> bool:
        alive = self._driver.coordinator.roster.alive()
        return node.alive and alive.get(node.name) == node.incarnation

    def _counting(self) -> list[Node]:
        return [node for node in self._nodes if self._is_counting(node)]
