"""Watches the store from outside: what is committed, for the oracle, and rules that no commit may break."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from elastic.core.ids import Batch
from elastic.core.steps import Position
from elastic.results import Description, ResultLog
from elastic.routing import Groupings, Routing
from storage import Secret
from storage.state import InputLog, LogRef, Manifest
from storage.state.manifest_log import BatchCommit, ManifestLog
from storage.state.paths import Paths
from storage.stores.protocol import Store
from tests.elastic.simulation.oracle import Committed


class Observer:
    """Is told of every write to the store. What it finds wrong it reports to `complain`."""

    def __init__(
        self,
        store: Callable[[], Store],
        secret: Secret,
        job: str,
        pipeline: Description,
        complain: Callable[[str], None],
    ) -> None:
        self.committed = Committed()
        self.newest: Manifest | BatchCommit | None = None
        self._store = store
        self._secret = secret
        self._job = job
        self._paths = Paths(job)
        self._complain = complain
        groupings = Groupings.of_kinds(pipeline.tasks, [stage.grouping for stage in pipeline.stages])
        self._units = [unit.number for stage in range(len(pipeline.stages)) for unit in groupings.units(stage)]

    def written(self, key: str) -> None:
        if key.startswith(self._paths.manifests):
            number = self._paths.number_of_manifest(key)
            if self.newest is None or number > self.newest.number:
                self._note(number)

    def _note(self, number: int) -> None:
        entry = self.newest = ManifestLog(self._store(), self._secret, self._job).read_entry(number)
        if isinstance(entry, Manifest):
            self._check_results(entry)
            self._note_groupings(entry)
            if entry.latest_time is not None and entry.latest_time.batch == len(self.committed.times):
                self._note_batch(entry)  # a batch commit that was written as a whole manifest
            logs = entry.log
        else:
            if entry.time is not None:
                self._note_batch(entry)
            logs = entry.logs
        self._note_rows(logs)

    def _note_groupings(self, manifest: Manifest) -> None:
        """Groupings hold for the batches after the newest one: they may not change within a batch."""
        groupings = Routing.from_json(manifest.assignment).groupings
        if not self.committed.groupings or groupings != self.committed.groupings[-1][1]:
            newest = -1 if manifest.latest_time is None else manifest.latest_time.batch
            self.committed.groupings.append((newest + 1, groupings))

    def _note_batch(self, entry: Any) -> None:
        time: Any = entry.time if isinstance(entry, BatchCommit) else entry.latest_time
        if time.batch != len(self.committed.times):
            self._complain(f"batch {time.batch} is committed after batch {len(self.committed.times) - 1}")
            return
        self.committed.times.append(time)
        source = entry.source
        is_new = source is not None and source.batch >= 0 and source.batch not in self.committed.sources
        self.committed.sources.append(source.batch if is_new else None)

    def _note_rows(self, logs: tuple[LogRef, ...]) -> None:
        """Keep the rows of new log objects: they are collected some time."""
        new: dict[Position, list[LogRef]] = {}
        for ref in sorted(logs):
            if (position := Position(Batch(ref.batch), ref.round)) not in self.committed.log:
                new.setdefault(position, []).append(ref)
        for position, refs in new.items():
            rows: dict[int, list[pa.Table]] = {}
            for ref in refs:
                for unit, table in InputLog(self._store(), self._secret, self._job).read(ref, self._units).items():
                    rows.setdefault(unit, []).append(table)
            self.committed.log[position] = {unit: pa.concat_tables(tables) for unit, tables in rows.items()}

    def _check_results(self, manifest: Manifest) -> None:
        """A state replaces the log: results of its batches that are not published could never be made again."""
        if manifest.units.newest_batch >= 0:
            published = max(ResultLog(self._store(), self._secret, self._job).poll(), default=-1)
            if manifest.units.newest_batch > published:
                self._complain(f"states include batch {manifest.units.newest_batch}, published is {published}")
