"""Reliability: after any crashes, races and lost answers, what the manifest names exists, and nothing else."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import settings

from storage.codec import Secret
from storage.errors import LeaseClosed, NotOwner, ObjectMissing, StoreUnavailable
from storage.state import (
    BatchTime,
    Collector,
    InputLog,
    Lease,
    LogRef,
    Manifest,
    Manifests,
    StateManager,
    StateRef,
    UnitId,
)
from storage.state.paths import Paths
from tests.storage.state.world import Actor, World

SEEDS = settings().max_examples * 3  # 90 in every run, 6,000 in a long one
OPERATOR = "counts"
SECRET = Secret.of("a secret for a simulated world")
UNITS = (UnitId.from_number(0), UnitId.from_number(1), UnitId(1, 0))
ROWS = pa.table({"key": [1, 2]})
PATHS = Paths(OPERATOR)


def has_input(unit: UnitId, batch: int) -> bool:
    """Whether the batch has input for the unit: in every third batch it has, and the units take turns."""
    return (batch + UNITS.index(unit)) % 3 == 0


def last_input(unit: UnitId, batch: int) -> int:
    """The newest batch, up to this one, that changed the unit's state."""
    return max((number for number in range(batch + 1) if has_input(unit, number)), default=-1)


def content(unit: UnitId, batch: int) -> bytes:
    return f"{unit} after {last_input(unit, batch)}".encode()


@dataclass
class Work:
    """What nodes do under one lease: save the state of a unit after a batch, or load a state that a manifest named."""

    driver_id: str
    lease: Lease
    waiting: list[tuple[UnitId, int] | StateRef] = field(default_factory=list)
    saved: list[StateRef] = field(default_factory=list)
    unchanged: dict[UnitId, int] = field(default_factory=dict)


@dataclass
class Driver:
    """What a driver remembers until it crashes."""

    manifests: Manifests
    known: Manifest | None = None
    works: list[Work] = field(default_factory=list)


def with_newer(current: Manifest, work: Work) -> Manifest:
    newer = [ref for ref in work.saved if ref.batch > current.units.through(ref.unit)]
    return current.with_states(newer, unchanged=work.unchanged)


class Cluster:
    """The programs of all actors, and what they were promised."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.random = self.world.random
        self.work: list[Work] = []  # for the nodes
        self.truth = Manifests(self.world.store, SECRET, OPERATOR)  # looks only, past all troubles
        self.owners: list[str] = []  # of all manifests in the order of their numbers
        self.batch = -1  # the newest that was acknowledged
        self.logs: dict[int, tuple[LogRef, ...]] = {}  # of batches whose commit was acknowledged
        self.times: dict[int, BatchTime] = {}  # of the same
        self.states: dict[UnitId, int] = {}  # the newest batch of a unit's state that was acknowledged
        self.included: dict[UnitId, int] = {}  # the newest batch that a unit's state was acknowledged to include
        self.low_water_mark = -1
        self.world.checks.append(self.check)

    def run(self) -> None:
        self.truth.recover(Manifest.first(UNITS))
        for number in range(2):
            self.world.start(f"node-{number}", self.node)
        for number in range(self.random.choice([1, 2, 2, 3])):
            self.world.start(f"driver-{number}", self.driver)
        self.world.start("collector", self.collector)
        self.world.run()

    # -- programs ---------------------------------------------------------------------------------------------------

    def node(self, actor: Actor) -> None:
        manager = StateManager(actor.store, SECRET, OPERATOR)
        while True:
            actor.pause(until=lambda: any(work.waiting for work in self.work))
            work = self.random.choice([work for work in self.work if work.waiting])
            task = work.waiting.pop()
            if self.random.random() < 0.4:
                actor.sleep()
            with suppress(StoreUnavailable):
                if isinstance(task, StateRef):
                    self.load(manager, task, work)
                else:
                    unit, batch = task
                    work.saved.append(manager.save(unit, content(unit, batch), batch=batch, lease=work.lease.id))

    def load(self, manager: StateManager, ref: StateRef, work: Work) -> None:
        """A reader under a lease may be slow: nothing that the manifest named is deleted."""
        try:
            state = manager.load(ref).state
        except ObjectMissing:
            latest = self.truth.latest()
            assert latest is not None
            assert not work.lease.is_open or latest.driver_id != work.driver_id
        else:
            assert bytes(state) == content(ref.unit, ref.batch)

    def collector(self, actor: Actor) -> None:
        for _ in range(10):
            actor.pause(steps=15)
            with suppress(StoreUnavailable):
                Collector(actor.store, SECRET, OPERATOR, keep=self.random.choice([1, 1, 2])).collect()

    def driver(self, actor: Actor) -> None:
        manifests = Manifests(actor.store, SECRET, OPERATOR)
        me = Driver(manifests)
        actor.pause(steps=self.random.choice([0, 50, 100]))
        actions = self.random.choices(
            [self.commit_batch, self.begin_snapshot, self.commit_snapshot, self.begin_load, self.end, self.sleep],
            weights=[2, 3, 4, 2, 1, 1],
            k=15,
        )
        for action in actions:
            actor.pause()
            try:
                me.known = me.known or manifests.recover()
                action(actor, me, me.known)
            except StoreUnavailable:
                continue
            except NotOwner:
                return

    def commit_batch(self, actor: Actor, me: Driver, known: Manifest) -> None:
        batch = known.last_batch + 1
        slices = {number: ROWS for number, unit in enumerate(UNITS) if has_input(unit, batch)}
        ref = InputLog(actor.store, SECRET, OPERATOR).append(batch, 0, slices)
        # The first commit sets the clock of the batch, after that of the batch before.
        time = BatchTime(batch, 10**6 * batch + self.random.randrange(10**6))
        me.known = me.manifests.commit_batch(batch, [ref], time=time)
        self.batch = max(self.batch, me.known.last_batch)
        self.logs[batch] = tuple(found for found in me.known.log if found.batch == batch)
        self.times |= {found.batch: found for found in me.known.times if found.batch == batch}

    def begin_snapshot(self, _: Actor, me: Driver, known: Manifest) -> None:
        work = self.new_work(me)
        if known.last_batch >= 0:
            units = self.random.sample(UNITS, self.random.randint(1, len(UNITS)))
            for unit in units:
                if last_input(unit, known.last_batch) <= known.units.through(unit) and self.random.random() < 0.7:
                    work.unchanged[unit] = known.last_batch
                else:
                    work.waiting.append((unit, known.last_batch))

    def begin_load(self, _: Actor, me: Driver, known: Manifest) -> None:
        self.new_work(me).waiting.extend(ref for ref in known.units.values() if ref)

    def new_work(self, me: Driver) -> Work:
        work = Work(me.manifests.driver_id, me.manifests.leases.open("work"))
        me.works.append(work)
        self.work.append(work)
        return work

    def commit_snapshot(self, actor: Actor, me: Driver, _: Manifest) -> None:
        if not me.works:
            return
        work = self.random.choice(me.works)
        was_open = work.lease.is_open
        try:
            me.known = me.manifests.commit(lambda current: with_newer(current, work))
        except LeaseClosed:
            assert not was_open  # a state that came too late: the collector may have it already
            return
        except StoreUnavailable:
            work.lease.close()  # given up, though the commit may still arrive
            actor.sleep()
            raise
        self.states |= {unit: ref.batch for unit, ref in me.known.units.items() if ref}
        self.included |= {unit: me.known.units.through(unit) for unit in UNITS}
        if self.random.random() < 0.7:
            work.lease.close()

    def end(self, _actor: Actor, me: Driver, _known: Manifest) -> None:
        if me.works:
            self.random.choice(me.works).lease.close()

    def sleep(self, actor: Actor, _me: Driver, _known: Manifest) -> None:
        actor.sleep()

    # -- promises ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """After every write: what the latest manifest names is there, and nothing acknowledged was lost."""
        latest = self.truth.latest()
        assert latest is not None
        there = {entry.key for entry in self.world.store.list()}
        assert {ref.key for ref in latest.units.values() if ref} <= there
        assert {PATHS.log(ref) for ref in latest.log if ref.batch > latest.low_water_mark} <= there
        if latest.driver_id not in self.owners[-1:]:
            assert latest.driver_id not in self.owners, "a driver committed after it was fenced"
            self.owners.append(latest.driver_id)
        assert latest.low_water_mark >= self.low_water_mark
        self.low_water_mark = latest.low_water_mark
        assert latest.last_batch >= self.batch
        for unit, batch in self.states.items():
            ref = latest.units[unit]
            assert ref is not None
            assert ref.batch >= batch
        for unit, batch in self.included.items():
            assert latest.units.through(unit) >= batch

    def check_settled(self) -> None:
        """A last driver and a last collection: states are as saved, the log is complete, and no garbage stays."""
        final = Manifests(self.world.store, SECRET, OPERATOR).recover()
        Collector(self.world.store, SECRET, OPERATOR, keep=1).collect()
        manager = StateManager(self.world.store, SECRET, OPERATOR)
        named = {ref.key for ref in final.units.values() if ref}
        for unit, ref in final.units.items():
            if ref is not None:
                assert bytes(manager.load(ref).state) == content(unit, final.units.through(unit))
        self.check_replay(final)
        assert [ref.batch for ref in final.log] == list(range(final.low_water_mark + 1, final.last_batch + 1))
        for batch, logs in self.logs.items():
            assert batch <= final.low_water_mark or logs == tuple(ref for ref in final.log if ref.batch == batch)
        assert [time.batch for time in final.times] == [ref.batch for ref in final.log]
        assert all(time == self.times.get(time.batch, time) for time in final.times)
        assert {entry.key for entry in self.world.store.list(PATHS.states)} == named
        assert all(PATHS.batch_of_log(entry.key) > final.low_water_mark for entry in self.world.store.list(PATHS.logs))
        assert [entry.key for entry in self.world.store.list(PATHS.manifests)] == [PATHS.manifest(final.number)]
        assert self.truth.leases.list_open() == []

    def check_replay(self, final: Manifest) -> None:
        """What the states do not include is in the log: nothing less, nothing twice."""
        through = {number: final.units.through(unit) for number, unit in enumerate(UNITS)}
        log = InputLog(self.world.store, SECRET, OPERATOR)
        replayed = [
            (number, ref.batch)
            for ref in final.log
            for number in log.read(ref, [number for number, batch in through.items() if batch < ref.batch])
        ]
        assert sorted(replayed) == [
            (number, batch)
            for number, unit in enumerate(UNITS)
            for batch in range(through[number] + 1, final.last_batch + 1)
            if has_input(unit, batch)
        ]


@pytest.fixture
def one_processor() -> Iterator[None]:
    """Threads that take turns do so twice as fast on one processor."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.usefixtures("one_processor")
def test_the_collector_deletes_all_garbage_and_nothing_else_under_any_faults() -> None:
    for seed in range(SEEDS):
        cluster = Cluster(seed)
        cluster.run()
        try:
            assert not cluster.world.errors, cluster.world.errors[0]
            cluster.check_settled()
        except Exception as broken:  # noqa: BLE001 - whatever it is, the story tells how it came
            story = "\n".join(cluster.world.story)
            pytest.fail(f"seed {seed}: {broken!r}\n{story}")
