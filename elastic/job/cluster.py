"""A running job as the control plane sees it: reads the driver's view, posts requests to its loop."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain

from elastic import threads
from elastic.control import NodeCounters, NodeStep, TaskCounters, Vitals
from elastic.control.key_loads import StageKeyLoads, compute_key_loads
from elastic.control.standbys import StandbyCopies, measure_share
from elastic.core import events
from elastic.core.hand_over import MigrationView
from elastic.core.ids import UnitId
from elastic.core.pipeline import count_guest_standbys, count_standbys, create_runners, select_counted_stages
from elastic.core.rekeying import RekeyingView
from elastic.core.view import JobView
from elastic.driver.context import JobContext
from elastic.driver.driver import Driver
from elastic.errors import InvalidRequest, KeysCannotBeSplit, KeysCannotMove, KeysNotCounted
from elastic.ingest.batch_ingest import BatchIngest
from elastic.job.status import StepStatus
from elastic.job.stream import Stream
from elastic.operators.key_records import RecordBytes, measure_records
from elastic.routing import SPLITS, Groupings, TableGrouping
from migration import Ownership


class JobCluster:
    """`elastic.control.Cluster` over the driver, the ingest and the stream of a job."""

    def __init__(
        self,
        context: JobContext,
        driver: Driver,
        ingest: BatchIngest,
        stream: Stream,
        check_room: Callable[[int], None],
    ) -> None:
        self._settings = context.settings
        self._pipeline = context.pipeline
        self._driver = driver
        self._ingest = ingest
        self._stream = stream
        self._check_room = check_room

    def assignment(self) -> Ownership:
        return self._driver.view.routing.assignment

    def standbys(self) -> StandbyCopies | None:
        counts = count_standbys(self._pipeline, self._settings.standbys)
        stages = [number for number, one in enumerate(self._pipeline.stages) if not one.operator.stateless]
        of_guests = count_guest_standbys(self._pipeline, self._settings.standbys)
        numbers = {count for stage in stages for count in (counts[stage], of_guests[stage])}
        view = self._driver.view
        routing = view.routing
        if len(numbers) != 1 or not routing.standbys:
            return None
        units: dict[int, set[UnitId]] = defaultdict(set)
        for unit in chain.from_iterable(routing.units(stage) for stage in stages):
            units[unit.task].add(unit)
        followed = {node: set(ready) for node, ready in view.standbys.items()}
        ready = tuple(
            tuple(node for node in nodes if units[task] <= followed.get(node, set()))
            for task, nodes in enumerate(routing.standbys)
        )
        hosts = {node.name: node.place for node in view.nodes if node.address}
        beats = [(node.name, node.heartbeat) for node in view.nodes if node.heartbeat is not None]
        owned = [one for name, beat in beats for one in beat.units if routing.owners(one.unit)[0] == name]
        standbys = [one for name, beat in beats for one in beat.standbys if name in routing.owners(one.unit)[1:]]
        return StandbyCopies(routing, ready, numbers.pop(), hosts, measure_share(owned, standbys))

    def has_reserves(self) -> bool:
        return bool(self._settings.spares) or any(count_standbys(self._pipeline, self._settings.standbys))

    def counters(self) -> dict[int, TaskCounters]:
        """Add up the stages of a task; while it moves, its source counts until the move is committed."""
        found: dict[int, TaskCounters] = defaultdict(lambda: TaskCounters(0, 0.0, 0))
        view = self._driver.view
        for node in view.nodes:
            for counted in node.heartbeat.units if node.heartbeat is not None else ():
                if node.name == view.routing.owners(counted.unit)[0]:
                    known = found[counted.unit.task]
                    found[counted.unit.task] = TaskCounters(
                        known.rows + counted.rows,
                        known.seconds + counted.seconds,
                        known.state_bytes + counted.state_bytes,
                        node.incarnation,
                    )
        return dict(found)

    def vitals(self) -> Vitals:
        view = self._driver.view
        nodes = {
            node.name: NodeCounters(node.incarnation, node.heartbeat.busy_seconds, node.heartbeat.pending_steps)
            for node in view.nodes
            if node.serving and node.heartbeat is not None
        }
        return Vitals(nodes, view.pending_batches, self._settings.max_pending_batches)

    def steps(self) -> dict[str, NodeStep]:
        now = threads.monotonic()
        steps = {node.name: StepStatus.of(node, now) for node in self._driver.view.nodes}
        return {name: NodeStep(str(step), step.overdue) for name, step in steps.items() if step is not None}

    def replace_node(self, node: str, reason: str) -> None:
        self._driver.replace_node(node, reason)

    def check_room(self, nodes: int) -> None:
        self._check_room(nodes)

    def add_nodes(self, nodes: Sequence[str]) -> None:
        self._driver.add_nodes(nodes, self._settings.node_start_seconds)

    def remove_node(self, node: str) -> None:
        self._driver.remove_node(node)

    def measure_keys(self, stage: str | None) -> StageKeyLoads:
        view = self._driver.view
        number = self._find_table(stage, view.routing.groupings)
        if number not in select_counted_stages(self._pipeline, self._settings.key_statistics):
            raise KeysNotCounted([self._pipeline.stages[number].name])
        loads = compute_key_loads(view.nodes, view.routing, number, self._pipeline.stages[number].name)
        return replace(loads, records=self._records[number].with_part(loads.part_bytes))

    @cached_property
    def _records(self) -> list[RecordBytes]:
        """Bytes that moves of keys take in the log besides states, by stage."""
        return [measure_records(runner) for runner in create_runners(self._pipeline, self._settings.on_error)]

    def find_unsplit(self) -> str | None:
        groupings = self._driver.view.routing.groupings
        for number, stage in enumerate(self._pipeline.stages):
            if getattr(groupings[number], "splits", None) == "none":
                return stage.name
        return None

    def split_keys(self, stage: str | None, splits: str) -> None:
        if splits not in tuple(SPLITS):
            raise InvalidRequest(f"unknown choice of keys to split {splits!r}. Use one of {', '.join(SPLITS)}.")
        if stage is not None:
            self._pipeline.stage_number(stage)  # raises if there is none
        stages = self._pipeline.stages
        partial = [
            (number, tuple(stages[stage].name for stage in (number, *self._pipeline.followers(number))))
            for number, one in enumerate(stages)
            if one.is_partial
        ]
        found = [number for number, names in partial if stage is None or stage in names]
        if len(found) != 1:
            raise KeysCannotBeSplit(stage, [names[1] for _, names in partial])
        self._driver.split_keys(found[0], splits, self._settings.store_retry_seconds)

    def begin(self, request: events.MigrationRequested | events.RekeyRequested) -> None:
        if isinstance(request, events.MigrationRequested):
            self._driver.begin_migration(request)
        else:
            self._driver.request(request)

    def pause(self, migration: str) -> None:
        self._driver.post(events.PauseRequested(migration))

    def resume(self, migration: str) -> None:
        self._driver.request(events.ResumeRequested(migration))

    def cancel(self, migration: str) -> None:
        self._driver.request(events.CancelRequested(migration))

    def note(self, migration: str, line: str) -> None:
        self._driver.post(events.ChangeNoted(migration, line))

    def migration(self, migration: str) -> MigrationView | None:
        found = self._driver.view.migration
        return found if found is not None and found.id == migration else None

    def rekeying(self, migration: str) -> RekeyingView | None:
        found = self._driver.view.rekeying
        return found if found is not None and found.id == migration else None

    def wait(self, migration: str, seconds: float) -> bool:
        def has_settled(view: JobView) -> bool:
            for found in (view.migration, view.rekeying):
                if found is not None and found.id == migration:
                    return found.is_over or (found.is_paused and found.is_idle)
            return True

        try:
            self._driver.views.wait_for(has_settled, seconds, "a migration")
        except TimeoutError:
            return False
        return True

    def _find_table(self, stage: str | None, groupings: Groupings) -> int:
        """Return the number of a stage that is grouped by table; `KeysCannotMove` if that is not possible."""
        names = [one.name for one in self._pipeline.stages]
        tables = [name for number, name in enumerate(names) if isinstance(groupings[number], TableGrouping)]
        if stage is not None:
            self._pipeline.stage_number(stage)  # raises if there is none
        found = [name for name in tables if stage in (None, name)]
        if len(found) != 1:
            raise KeysCannotMove(stage, tables)
        return names.index(found[0])

    @contextmanager
    def suspended(self) -> Iterator[None]:
        with self._ingest.suspended():
            self._driver.wait_until_published(self._driver.view.newest_batch)
            yield

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """End the stream first and start it last; what it brought is applied and saved before a node stops."""
        with self._stream.interrupted():
            self._driver.wait_until_published(self._driver.view.newest_batch)
            self._driver.snapshot(self._settings.store_retry_seconds)
            self._driver.stop_nodes()
            try:
                yield
            except BaseException:
                self._driver.stop_nodes()  # back to the committed assignment
                raise
            finally:
                self.start_nodes()

    def start_nodes(self) -> None:
        self._driver.start_owners(self._settings.node_start_seconds)
