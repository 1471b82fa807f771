"""A fake job without Spark: the real control plane on a fake cluster, behind the port of the API."""

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

import storage
from elastic.control import (
    Autoscaler,
    JobJournal,
    JournalPage,
    KeyRequest,
    LevelPlans,
    Load,
    Migration,
    Monitor,
    Scaler,
    ScaleRequest,
    TaskMigration,
    make_requests,
)
from elastic.errors import JobStopped, KeysNotCounted
from elastic.job.keys import KeyStatus, KeyTableStatus, list_key_tables
from elastic.job.status import JobStatus, NodeStatus, StepStatus, UnitStatus
from elastic.operators.graph import JobGraph
from elastic.results import Description
from elastic.results.description import StageDescription
from mdp import ValueTable
from migration import Ownership, Plan, Workload
from storage.codec import Secret
from tests.elastic.api import paper_keys
from tests.elastic.api.paper_cluster import PaperCluster

_BATCHES_PER_SECOND = 4


class PaperJob:
    """Ingests four batches of 1,000 rows a second; a trigger takes 120 ms, and results lag by one batch."""

    def __init__(self, name: str = "words", tasks: int = 16, nodes: int = 4, **cluster: Any) -> None:
        self.name = name
        schema = pa.schema({"word": pa.string()})
        self.pipeline = Description((StageDescription("CountByKey", ("word",), None, schema),), tasks, "1")
        self.cluster = PaperCluster(tasks, nodes, **cluster)
        self.state = "running"
        self.losses = 0
        self.step: StepStatus | None = None  # the current step of every node
        self.lag: int | None = None  # of the standbys of all nodes; None without any
        self.sink_error: str | None = None
        self.problems: list[str] = []
        self.autoscaler: Autoscaler | None = None
        self._store = storage.open("memory:")
        self._journal = JobJournal(self._store, "job")
        self._monitor = Monitor(tasks)
        self._scaler = Scaler(self.cluster, self._monitor, self._journal)
        self._began = time.monotonic()

    @property
    def stream(self) -> Any:
        progress = {"runId": "1", "batchId": self._batch(), "durationMs": {"triggerExecution": 120}}
        return SimpleNamespace(lastProgress=progress)

    @property
    def migration(self) -> Migration | None:
        return self._scaler.current

    def batches(self) -> tuple[int, int]:
        batch = self._batch()
        return batch, max(-1, batch - 1)

    def graph(self) -> JobGraph:
        return self.pipeline.graph

    def status(self) -> JobStatus:
        batch, applied = self.batches()
        owned = self.assignment()
        return JobStatus(
            name=self.name,
            state=self.state,
            epoch=len(self.journal()),
            last_batch=batch,
            published_batch=applied,
            saved_batch=max(-1, batch - 8),
            pending_batches=1,
            rows=1000 * (batch + 1),
            losses=self.losses,
            recoveries=({"node": "node-1", "reason": "silent", "seconds": 1.5, "units": 4, "replayed_rows": 9},)
            * self.losses,
            nodes=tuple(self._node(name, owned) for name in sorted(self.cluster.nodes)),
            sink_error=self.sink_error,
            problems=tuple(self.problems),
        )

    def assignment(self) -> Ownership:
        return self.cluster.assignment()

    def workload(self) -> Workload:
        return self._scaler.workload()

    def keys(self, top: int = 20, stage: str | None = None) -> list[KeyStatus]:
        stage = self.pipeline.stages[self.pipeline.stage_number(stage)].name
        if not self.key_tables():
            raise KeysNotCounted([stage])
        return paper_keys.list_keys(self.assignment(), self.cluster.groupings(), stage, top)

    def key_tables(self) -> list[KeyTableStatus]:
        return list_key_tables(self.cluster.groupings(), self.pipeline)

    def load(self, seconds: float = 60.0) -> Load:
        return self._monitor.load(seconds)

    def journal(self) -> list[dict[str, Any]]:
        return list(self._journal.read())

    def journal_page(self, limit: int, before: int | None = None) -> JournalPage:
        return self._journal.page(limit, before)

    def plan(self, nodes: int | None = None, *, add: int | None = None, remove: Sequence[str] = (), **how: Any) -> Plan:
        return self._scaler.plan(self._request(nodes, add, remove, how))

    def scale(
        self, nodes: int | None = None, *, add: int | None = None, remove: Sequence[str] = (), **how: Any
    ) -> TaskMigration:
        if self.state != "running":
            raise JobStopped(self.name)
        return self._scaler.scale(self._request(nodes, add, remove, how))

    def rebalance(self, level: str = "tasks", **how: Any) -> Migration:
        if level == "tasks":
            return self.scale(**how)
        self.pipeline.stage_number(how.get("stage"))
        if level == "keys":
            return self._scaler.move_keys(KeyRequest(**how))
        return self._scaler.balance(*make_requests(how))

    def split(self, split: str = "head", stage: str | None = None) -> None:
        self.pipeline.stage_number(stage)
        self.cluster.split_keys(stage, split)

    def plan_levels(self, **how: Any) -> LevelPlans:
        tasks, keys = make_requests(how)
        self.pipeline.stage_number(keys.stage)
        return self._scaler.plan_levels(tasks, keys)

    def _batch(self) -> int:
        return int((time.monotonic() - self._began) * _BATCHES_PER_SECOND)

    def _node(self, name: str, owned: Ownership) -> NodeStatus:
        units = tuple(UnitStatus(0, task, 10, 0.1, 1000) for task in owned.tasks_of(name))
        return NodeStatus(
            name,
            True,
            "127.0.0.1:1",
            1,
            loading=0,
            pending_steps=0,
            staged_bytes=0,
            units=units,
            step=self.step,
            standbys=units if self.lag is not None else (),
            lag=self.lag or 0,
        )

    def _request(self, nodes: int | None, add: int | None, remove: Sequence[str], how: dict[str, Any]) -> ScaleRequest:
        options = {name: how.pop(name) for name in ScaleRequest.option_names() if name in how}
        if "value" in how:
            how["value"] = ValueTable.read(self._store, how["value"], secret=Secret.random())
        return ScaleRequest(nodes, add, tuple(remove), **options, knowledge=how)
