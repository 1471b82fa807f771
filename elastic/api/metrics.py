"""Metrics for Prometheus. A scrape reads the newest snapshots, so it costs the jobs nothing.

The table in docs/operations.md lists `METRICS`; a test compares the two.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as MetricFamily
from prometheus_client.exposition import choose_encoder

from elastic.api.outputs import KeyTable, Migration, Snapshot, SnapshotNode
from elastic.api.responses import BATCH_POLL_SECONDS

if TYPE_CHECKING:
    from elastic.api.watcher import Watcher

OUTCOMES = ("done", "cancelled", "failed")
JOB_LABEL = "job_name"  # Prometheus uses the label `job` itself

# The apply lag is measured every 50 ms, so finer buckets would not differ.
_BUCKETS = (BATCH_POLL_SECONDS, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)

# Values of the labels besides the job's name, and the value; None leaves the sample out.
Sample = tuple[tuple[str, ...], float | None]


@dataclass(frozen=True)
class Metric:
    """A gauge or counter, and how to read its samples from a watcher and its newest snapshot."""

    name: str
    kind: str  # gauge or counter
    description: str
    read: Callable[["Watcher", Snapshot], Iterable[Sample]]
    labels: tuple[str, ...] = ()  # besides the job's name


def _job(name: str, description: str, read: Callable[[Snapshot], float | None], kind: str = "gauge") -> Metric:
    return Metric(name, kind, description, lambda _, snapshot: [((), read(snapshot))])


def _node(name: str, description: str, read: Callable[[SnapshotNode], float | None]) -> Metric:
    def samples(_: "Watcher", snapshot: Snapshot) -> Iterator[Sample]:
        return (((node.name,), read(node)) for node in snapshot.nodes)

    return Metric(name, "gauge", description, samples, labels=("node",))


def _table(name: str, description: str, read: Callable[[KeyTable], float]) -> Metric:
    def samples(_: "Watcher", snapshot: Snapshot) -> Iterator[Sample]:
        return (((table.stage,), read(table)) for table in snapshot.tables)

    return Metric(name, "gauge", description, samples, labels=("stage",))


def _migration(name: str, description: str, read: Callable[[Migration], float | None]) -> Metric:
    def samples(_: "Watcher", snapshot: Snapshot) -> Iterator[Sample]:
        if snapshot.migration is not None and not snapshot.migration.is_over:
            yield (), read(snapshot.migration)

    return Metric(name, "gauge", description, samples)


def _outcomes(watcher: "Watcher", _: Snapshot) -> Iterator[Sample]:
    counts = watcher.tracker.count_outcomes()
    return (((outcome,), counts.get(outcome, 0)) for outcome in OUTCOMES)


def _keys_moved(watcher: "Watcher", _: Snapshot) -> Iterator[Sample]:
    yield (), watcher.tracker.count_keys_moved()


def _is_migrating(snapshot: Snapshot) -> bool:
    return snapshot.migration is not None and not snapshot.migration.is_over


def _to_seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


METRICS: Sequence[Metric] = (
    _job("elastic_job_up", "Whether the job is running (0 or 1).", lambda s: s.state == "running"),
    _job("elastic_rows_total", "Rows ingested since the job started.", lambda s: s.rows, "counter"),
    _job("elastic_last_batch", "Id of the newest committed batch.", lambda s: s.last_batch),
    _job("elastic_published_batch", "Id of the newest batch with published results.", lambda s: s.published_batch),
    _job("elastic_saved_batch", "Id of the newest batch that every saved state includes.", lambda s: s.saved_batch),
    _job("elastic_batches_ahead", "Batches committed and not applied yet.", lambda s: s.pending_batches),
    _job(
        "elastic_batches_allowed",
        "Pending-batch limit; at it the source is throttled.",
        lambda s: s.max_pending_batches,
    ),
    _job(
        "elastic_trigger_seconds",
        "Duration of Spark's newest trigger; absent if there was none since the last snapshot.",
        lambda s: _to_seconds(s.response.trigger_ms),
    ),
    _job(
        "elastic_apply_lag_seconds",
        "Longest time from commit to publication in the last half second; absent without pending batches.",
        lambda s: _to_seconds(s.response.apply_lag_ms),
    ),
    _job("elastic_sink_failed", "Whether a sink has failed (0 or 1).", lambda s: s.sink_error is not None),
    _job(
        "elastic_problems", "Number of problems of a running job; `GET /health` lists them.", lambda s: len(s.problems)
    ),
    _job("elastic_epoch", "Version of the routing: of the assignment and of the key tables.", lambda s: s.epoch),
    _job("elastic_nodes", "Nodes that own tasks.", lambda s: len(set(s.owners))),
    _job("elastic_spares", "Processes that wait for the name of a node.", lambda s: s.spares),
    _job("elastic_node_losses_total", "Nodes lost since the job started.", lambda s: s.losses, "counter"),
    _job("elastic_node_recoveries_total", "Nodes recovered since the job started.", lambda s: s.recoveries, "counter"),
    _node("elastic_node_up", "Whether the node is serving (0 or 1).", lambda n: n.serving),
    _node("elastic_node_tasks", "Tasks that the node owns.", lambda n: n.tasks),
    _node(
        "elastic_node_utilisation_ratio",
        "Fraction of the last 10 seconds in which the node was busy.",
        lambda n: n.utilisation,
    ),
    _node("elastic_node_work_seconds", "Processing time of the node's tasks in the last minute.", lambda n: n.work),
    _job("elastic_node_work_cap_seconds", "Maximum work per node of a balanced assignment.", lambda s: s.cap),
    _job(
        "elastic_node_imbalance_ratio",
        "Busy time of the busiest node in the last 10 seconds over the mean, less 1; absent while all nodes are idle.",
        lambda s: s.imbalance,
    ),
    _node("elastic_node_state_bytes", "State size of the node's tasks.", lambda n: n.state_bytes),
    _node("elastic_node_staged_bytes", "Rows staged on the node and not applied yet.", lambda n: n.staged_bytes),
    _node("elastic_node_waiting_steps", "Committed steps that the node has not applied.", lambda n: n.pending_steps),
    _node(
        "elastic_node_step_seconds",
        "Running time of the node's current step; 0 between steps.",
        lambda n: 0.0 if n.step is None else n.step.seconds,
    ),
    _node(
        "elastic_node_step_overdue",
        "Whether the current step takes far longer than usual (0 or 1).",
        lambda n: n.step is not None and n.step.overdue,
    ),
    _node("elastic_node_loading_units", "Units whose state the node is loading.", lambda n: n.loading),
    _node("elastic_node_standby_units", "Units of other nodes that the node follows.", lambda n: n.standbys),
    _node("elastic_node_standby_lag_batches", "Published batches that its standbys have not taken.", lambda n: n.lag),
    _table("elastic_key_table_entries", "Entries of the key table.", lambda t: t.entries),
    _table(
        "elastic_key_table_entries_allowed",
        "Maximum number of entries that a plan leaves in the key table by default.",
        lambda t: t.most_entries,
    ),
    Metric("elastic_keys_moved_total", "counter", "Keys moved since the server started.", _keys_moved),
    _job("elastic_migration_running", "Whether a migration is in progress (0 or 1).", _is_migrating),
    Metric(
        "elastic_migrations_total", "counter", "Migrations ended since the server started.", _outcomes, ("outcome",)
    ),
    _migration("elastic_migration_tasks", "Tasks that the current migration moves.", lambda m: m.progress.tasks),
    _migration(
        "elastic_migration_tasks_done", "Tasks that the current migration has moved.", lambda m: m.progress.tasks_done
    ),
    _migration("elastic_migration_keys", "Keys that the current migration moves.", lambda m: m.progress.keys),
    _migration(
        "elastic_migration_keys_done", "Keys that the current migration has moved.", lambda m: m.progress.keys_done
    ),
    _migration("elastic_migration_bytes", "State that the current migration moves.", lambda m: m.progress.bytes),
    _migration(
        "elastic_migration_bytes_done", "State that the current migration has moved.", lambda m: m.progress.bytes_done
    ),
    _migration("elastic_migration_seconds", "Running time of the current migration.", lambda m: m.progress.seconds),
)


def create_response_histogram() -> Histogram:
    """Return a histogram of response times by job, in no registry; every published batch is observed once."""
    description = "Time from the commit of a batch until its results are published."
    return Histogram("elastic_response_seconds", description, [JOB_LABEL], buckets=_BUCKETS, registry=None)


def format_metrics(watchers: Sequence["Watcher"], response_times: Histogram, accept: str) -> tuple[bytes, str]:
    """Return the metrics in the format that an Accept header asks for, and their content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_JobCollector(watchers, response_times))
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # prometheus_client fails on a version that is no number
        encode, content_type = choose_encoder("")
    return encode(registry), content_type


class _JobCollector:
    """Collects the metrics of all jobs for one scrape."""

    def __init__(self, watchers: Sequence["Watcher"], response_times: Histogram) -> None:
        self._snapshots = [(watcher, watcher.snapshot()) for watcher in watchers]
        self._response_times = response_times

    def collect(self) -> Iterator[MetricFamily]:
        for metric in METRICS:
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = kind(metric.name, metric.description, labels=[JOB_LABEL, *metric.labels])
            for watcher, snapshot in self._snapshots:
                for labels, value in metric.read(watcher, snapshot):
                    if value is not None:
                        family.add_metric([snapshot.job, *labels], float(value))
            yield family
        for histogram in self._response_times.collect():
            # The text format would show creation times as a gauge of their own.
            histogram.samples = [sample for sample in histogram.samples if not sample.name.endswith("_created")]
            yield histogram
