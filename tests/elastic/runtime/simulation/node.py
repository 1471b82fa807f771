"""A simulated node: one incarnation, its host, and everything that a real node does in its threads, in any order."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from elastic.runtime.node.outputs import Outputs
from elastic.runtime.pipeline import runners
from elastic.runtime.protocol import (
    Adopt,
    Apply,
    Forget,
    Held,
    Host,
    Installed,
    Message,
    Release,
    Released,
    Saved,
    Snapshot,
    Stored,
    Unchanged,
    Work,
)
from elastic.runtime.protocol.host import Capture, Taken
from elastic.runtime.protocol.ordering import InOrder
from storage.errors import ObjectMissing, StoreUnavailable
from storage.state import PackedState, StateRef
from tests.elastic.runtime.simulation.shared import Shared


class Node:
    """One incarnation. The world tells it whether it `counts`: whether the driver still listens to it."""

    def __init__(
        self,
        shared: Shared,
        name: str,
        incarnation: str,
        *,
        report: Callable[["Node", Any], None],
        retrieve: Callable[["Node", Held], Any],
        counts: Callable[["Node"], bool],
    ) -> None:
        self.name = name
        self.incarnation = incarnation
        self.alive = True
        stages = runners(shared.pipeline, "fail")
        self.host = Host(stages)
        self.commands: InOrder[Message] = InOrder()
        self.staged: dict[str, tuple[set[int], dict[int, pa.Table]]] = {}  # by nonce: slots it covers, rows
        self.offers: dict[str, PackedState] = {}
        self.to_store: list[PackedState] = []
        self._shared = shared
        self._report = report
        self._retrieve = retrieve
        self._counts = counts
        self._outputs = Outputs(stages, shared.routing, shared.log, shared.results, keeps_results=True)
        self._to_write: deque[Taken] = deque()
        self._snapshot: Snapshot | None = None
        self._captured: list[Capture] = []
        self._saved: list[StateRef] = []
        self._unchanged: list[Unchanged] = []
        self._releases: list[tuple[Release, list[int], list[StateRef]]] = []  # with the slots left, the states saved

    def receive(self, number: int, message: Message) -> None:
        if self.alive:
            for ready in self.commands.accept(number, message):
                self._shared.tell(self.incarnation, "hears", ready)
                self._handle(ready)

    def work(self) -> None:
        """Do one of the things that can be done."""
        kinds = [kind for kind, is_possible in self._possible() if is_possible]
        if not kinds:
            return
        try:
            self._shared.chance.choice(kinds)()
        except StoreUnavailable as away:
            self._shared.tell(self.incarnation, "has to repeat:", away)

    def _possible(self) -> list[tuple[Callable[[], None], bool]]:
        return [
            (self._take, bool(self.host.works())),
            (self._write, bool(self._to_write)),
            (self._capture, self._snapshot is not None and len(self._captured) < 2),
            (self._save, bool(self._captured)),
            (self._release, bool(self._releases)),
            (self._store_offered, bool(self.to_store)),
        ]

    def _handle(self, message: Message) -> None:
        if isinstance(message, Adopt):
            held = self.host.adopt(message)
            self._shared.agenda.add(lambda: self._load(held))
        elif isinstance(message, Apply):
            self.host.apply(message)
        elif isinstance(message, Release):
            if slots := self.host.release(message):
                self._releases.append((message, list(slots), []))
        elif isinstance(message, Forget):
            self.host.forget(message)
            self.offers = {key: one for key, one in self.offers.items() if one.ref.unit.task not in message.slots}
        elif self.host.begin_snapshot(message):
            self._snapshot, self._captured, self._saved, self._unchanged = message, [], [], []

    def _load(self, units: tuple[Held, ...]) -> None:
        """All at once, as soon as all are there that the host still awaits."""
        wanted = tuple(held for held in units if self.host.awaits(held))
        if not self.alive or not wanted:
            return
        try:
            found = {held: self._retrieve(self, held) for held in wanted}
        except (ObjectMissing, StoreUnavailable) as missing:
            if isinstance(missing, ObjectMissing) and not self._counts(self):
                self.alive = False  # it fails, and its report is ignored
                return
            self._shared.tell(self.incarnation, "waits for", wanted)
            self._shared.agenda.add(lambda: self._load(wanted))
            return
        for held, saved in found.items():
            assert self.host.loaded(held, saved)
        self._report(self, Installed(self.name, self.incarnation, tuple(held.slot for held in wanted)))

    def _take(self) -> None:
        work = self._shared.chance.choice(self.host.works())
        try:
            rows = self._rows(work)
        except ObjectMissing:
            # The log is kept for those that count; any other node fails, and its report is ignored.
            assert not self._counts(self), f"{self.incarnation} misses the log of {work.step.position}"
            self.alive = False
            return
        self._shared.tell(f"{self.incarnation} takes {work.step.position} with {work.slots}")
        taken = self.host.take(work, rows)
        if taken.slots:
            self._to_write.append(taken)

    def _rows(self, work: Work) -> dict[int, list[pa.Table]]:
        rows: dict[int, list[pa.Table]] = {}
        for ref in work.step.logs:
            covered, slices = self.staged.get(ref.nonce, (set(), {}))
            if not covered.issuperset(work.slots):
                slices = self._shared.log.read(ref, work.slots)
            for slot in work.slots:
                if slot in slices:
                    rows.setdefault(slot, []).append(slices[slot])
        return rows

    def _write(self) -> None:
        report = self._outputs.store(self._to_write[0], self.name, self.incarnation)
        self._to_write.popleft()
        self._report(self, report)

    def _capture(self) -> None:
        assert self._snapshot is not None
        captured = self.host.next_capture()
        if isinstance(captured, Capture):
            self._captured.append(captured)
        elif captured is not None:
            self._unchanged.append(captured)
        elif not self.host.left_to_capture and not self._captured:
            states, unchanged = tuple(self._saved), tuple(self._unchanged)
            self._report(self, Saved(self.name, self.incarnation, self._snapshot.lease, states, unchanged))
            self._snapshot = None

    def _save(self) -> None:
        """A state that the store does not take is left out of the snapshot."""
        captured = self._captured.pop()
        assert self._snapshot is not None
        unit, lease = self._shared.routing.unit(captured.slot), self._snapshot.lease
        self._saved.append(self._shared.states.save(unit, captured.state, batch=captured.batch, lease=lease))

    def _release(self) -> None:
        """Store or offer one state that has stopped, or report that all have."""
        release = self._shared.chance.choice(self._releases)
        message, left, saved = release
        for slot in left:
            if (captured := self.host.capture_released(slot)) is not None:
                unit = self._shared.routing.unit(slot)
                packed = self._shared.states.pack(unit, captured.state, batch=captured.batch, lease=message.lease)
                if message.direct:
                    self.offers[packed.ref.key] = packed
                    self.to_store.append(packed)
                else:
                    self._shared.states.put(packed)
                left.remove(slot)
                saved.append(packed.ref)
                return
        if not left:
            self._releases.remove(release)
            self._report(self, Released(self.name, self.incarnation, tuple(saved), stored=not message.direct))

    def _store_offered(self) -> None:
        """Store one offered state, and sometimes offer it no longer; or leave it, if nobody needs it any more."""
        if self._shared.happens(0.8):
            return  # the store is slow, so that what is only offered is lost now and then
        packed = self.to_store[self._shared.chance.randrange(len(self.to_store))]
        if packed.ref.key in self.offers:
            self._shared.states.put(packed)
            self._report(self, Stored(self.name, self.incarnation, packed.ref))
            if self._shared.happens(0.3):
                del self.offers[packed.ref.key]
        self.to_store.remove(packed)
