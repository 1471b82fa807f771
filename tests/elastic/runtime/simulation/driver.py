"""The simulated driver, one life: it passes events to the coordinator and carries out its commands in any order."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from elastic.routing import IntervalRouting, routing_from_json
from elastic.runtime.controller.moving import Moving
from elastic.runtime.pipeline import emitting, runners
from elastic.runtime.protocol import Coordinator, Position, commands, events
from elastic.runtime.restart import find_published, recover_manifest
from storage.errors import StorageError, StoreUnavailable
from storage.state import BatchTime, InputLog, Lease, LogRef, Manifest, Manifests, SourceBatch
from tests.elastic.runtime.simulation.oracle import Committed, timestamp_of
from tests.elastic.runtime.simulation.shared import JOB, SECRET, Shared


class Driver:
    """Recovers from the store, then executes what its coordinator decides. Nodes are the world's business."""

    def __init__(
        self,
        shared: Shared,
        committed: Committed,
        *,
        start_node: Callable[[str, str], None],
        stop_node: Callable[[str], None],
        send: Callable[[str, int, Any], None],
        check_log: Callable[[Manifest], None],
    ) -> None:
        self._shared = shared
        self._check_log = check_log
        self._committed = committed
        self._numbers: Counter[str] = Counter()  # of commands sent, by incarnation
        self._lease: Lease | None = None
        self._sent = -1  # the newest batch that was sent in this life
        self.manifests = Manifests(shared.store, SECRET, JOB)
        manifest = recover_manifest(self.manifests, JOB, shared.pipeline, "at", shared.nodes)
        published = find_published(manifest, shared.results, JOB)
        routing = routing_from_json(manifest.assignment)
        assert isinstance(routing, IntervalRouting)
        emits = emitting(runners(shared.pipeline, "fail"))
        self.coordinator = Coordinator(manifest, routing, published, emits, routing.assignment.nodes)
        self.moving = Moving(self.coordinator)
        self._do: dict[type, Callable[[Any], None]] = {
            commands.StartNode: lambda command: start_node(command.node, command.incarnation),
            commands.StopNode: lambda command: stop_node(command.incarnation),
            commands.Send: lambda command: send(command.incarnation, self._number(command), command.message),
            commands.CommitRound: self._commit_round,
            commands.CommitEpoch: self._commit_epoch,
            commands.CommitRouting: self._commit_routing,
            commands.PublishResults: self._publish,
            commands.OpenLease: self._open_lease,
            commands.OpenMoveLease: self._open_move_lease,
            commands.CloseMoveLease: self._close_move_lease,
            commands.CommitStates: self._commit_states,
        }
        self._note(manifest)
        shared.tell(f"the driver begins: {manifest.last_batch=} {manifest.open_round=} {published=}")

    @property
    def source(self) -> int:
        """The newest batch of the source that is committed."""
        source = self.coordinator.manifest.source
        return -1 if source is None else source.batch

    @property
    def is_saved(self) -> bool:
        """Whether every committed batch is applied, published and in all saved states."""
        published = self.coordinator.published
        saved = self.coordinator.manifest.low_water_mark
        return saved == published == self.coordinator.newest.batch and self.has_room

    @property
    def told_of_snapshot(self) -> set[str]:
        """Nodes that have answered the snapshot under way."""
        run = self.coordinator.snapshots._run
        return set() if run is None else set(run.told_by.values())

    @property
    def has_room(self) -> bool:
        """Whether a batch may be sent: none is being committed, and few are pending."""
        batches = self.coordinator.batches
        return self._sent <= self.coordinator.newest.batch and batches.ahead < 3 and batches.is_between

    def accept(self, logs: tuple[LogRef, ...], source: SourceBatch | None, latest_ms: int | None) -> None:
        """Commit a batch of the source, or a tick; number and clocks follow from what is committed."""
        number = self._sent = self.coordinator.newest.batch + 1
        latest = self.coordinator.manifest.latest_time
        watermark = None if latest is None else latest.next_watermark_ms
        known = [at for at in (watermark, latest_ms) if at is not None]
        time = BatchTime(number, timestamp_of(number), watermark, max(known, default=None))
        self.hear(events.BatchLogged(number, logs, time, source))

    def hear(self, event: Any) -> None:
        self._shared.tell("heard", event)
        self.execute(self.moving.handle(event))

    def execute(self, decided: list[Any]) -> None:
        for command in decided:
            self._shared.tell("   decided", command)
            self._do[type(command)](command)

    def _number(self, command: commands.Send) -> int:
        self._numbers[command.incarnation] += 1
        return self._numbers[command.incarnation] - 1

    def _answer(self, event: Any) -> None:
        """Answers come in any order."""
        self._shared.agenda.add(lambda: self.hear(event))

    def _commit_round(self, command: commands.CommitRound) -> None:
        def commit() -> None:
            manifest = self.manifests.commit_batch(
                command.batch,
                command.logs,
                round=command.round,
                complete=command.complete,
                time=command.time if command.round == 0 else None,
                source=command.source,
                published=command.published,
            )
            self._note(manifest)
            self._answer(
                events.RoundCommitted(
                    manifest, command.batch, command.round, command.logs, command.complete, command.time
                )
            )

        self._shared.agenda.add_store_call(commit)

    def _commit_epoch(self, _: commands.CommitEpoch) -> None:
        def commit() -> None:
            manifest = self.manifests.commit(lambda current: replace(current, epoch=current.epoch + 1))
            self._answer(events.EpochCommitted(manifest))

        self._shared.agenda.add_store_call(commit)

    def _commit_routing(self, command: commands.CommitRouting) -> None:
        def change(current: Manifest) -> Manifest:
            routing = IntervalRouting(command.assignment, current.epoch + 1)
            return replace(current, epoch=routing.epoch, assignment=routing.to_json())

        def commit() -> None:
            manifest = self.manifests.commit(change)
            routing = routing_from_json(manifest.assignment)
            self._answer(events.RoutingCommitted(manifest, routing, command.assignment))

        self._shared.agenda.add_store_call(commit)

    def _publish(self, command: commands.PublishResults) -> None:
        def publish() -> None:
            self._shared.results.publish(command.batch, command.results, command.timestamp_ms)
            self._answer(events.Published(command.batch))

        self._shared.agenda.add_store_call(publish)

    def _open_lease(self, _: commands.OpenLease) -> None:
        def open_lease() -> None:
            try:
                self._lease = self.manifests.leases.open("snapshot")
            except StoreUnavailable:
                self._answer(events.SnapshotFailed("the store is away"))
            else:
                self._answer(events.LeaseOpened(self._lease.id))

        self._shared.agenda.add_store_call(open_lease)

    def _open_move_lease(self, _: commands.OpenMoveLease) -> None:
        def open_lease() -> None:
            self._answer(events.MoveLeaseOpened(self.manifests.leases.open("migration").id))

        self._shared.agenda.add_store_call(open_lease)

    def _close_move_lease(self, command: commands.CloseMoveLease) -> None:
        def close_lease() -> None:
            with suppress(StorageError):  # the lease stays open until the next life
                self.manifests.leases.abandon([command.lease])

        self._shared.agenda.add_store_call(close_lease)

    def _commit_states(self, command: commands.CommitStates) -> None:
        unchanged = {self._shared.routing.unit(slot): batch for slot, batch in command.unchanged.items()}

        def change(current: Manifest) -> Manifest:
            published = max(current.published, command.published)
            return current.with_states(command.states, unchanged=unchanged, published=published)

        def commit() -> None:
            self._check_published(command)
            try:
                manifest = self.manifests.commit(change)
            except StoreUnavailable:
                self._answer(events.SnapshotFailed("the store is away"))
            else:
                self._check_log(manifest)
                self._answer(events.StatesCommitted(manifest, command.lease))
                self._shared.agenda.add(self._shared.collect)
            if self._lease is not None:
                with suppress(StorageError):  # the lease stays open until the next life
                    self._lease.close()
                self._lease = None

        self._shared.agenda.add_store_call(commit)

    def _check_published(self, command: commands.CommitStates) -> None:
        """A state replaces the log: results of its batches that are not published could never be made again."""
        batches = [*(ref.batch for ref in command.states), *command.unchanged.values()]
        assert max(batches, default=-1) <= self.coordinator.published, f"{command} precedes the results"

    def _note(self, manifest: Manifest) -> None:
        """Keep for the oracle what is committed now: the batch, and its rows before they are collected."""
        if manifest.latest_time is not None and manifest.latest_time.batch == len(self._committed.sources):
            new_source = manifest.source is not None and manifest.source.batch not in self._committed.sources
            self._committed.sources.append(manifest.source.batch if new_source and manifest.source else None)
        new: dict[Position, list[Any]] = {}
        for ref in sorted(manifest.log):
            if (position := Position(ref.batch, ref.round)) not in self._committed.log:
                new.setdefault(position, []).append(ref)
        slots = [
            slot for stage in range(len(self._shared.pipeline.stages)) for slot in self._shared.routing.slots(stage)
        ]
        for position, refs in new.items():
            rows: dict[int, list[pa.Table]] = {}
            for ref in refs:
                for slot, table in InputLog(self._shared.store.objects, SECRET, JOB).read(ref, slots).items():
                    rows.setdefault(slot, []).append(table)
            self._committed.log[position] = {slot: pa.concat_tables(tables) for slot, tables in rows.items()}
