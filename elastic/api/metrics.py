"""What Prometheus is told: one table of metrics, read from the newest snapshot, so that a scrape costs the job nothing.

The table in docs/operations.md is drawn from `METRICS`; a test compares the two.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from elastic.api.outputs import Migration, Snapshot, SnapshotNode

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OUTCOMES = ("done", "cancelled", "failed")

Labels = Mapping[str, str]
Sample = tuple[Labels, float | None]


@dataclass(frozen=True)
class Scraped:
    """One job at a scrape."""

    snapshot: Snapshot
    outcomes: Mapping[str, int]  # of the migrations that ended


@dataclass(frozen=True)
class Metric:
    """A name with its unit in it, as Prometheus wants it, and how it is read. A value of None is not told."""

    name: str
    kind: str  # gauge or counter
    unit: str
    help: str
    read: Callable[[Scraped], Iterable[Sample]]


def _job(read: Callable[[Snapshot], float | None]) -> Callable[[Scraped], Iterable[Sample]]:
    return lambda scraped: [({}, read(scraped.snapshot))]


def _nodes(read: Callable[[SnapshotNode], float | None]) -> Callable[[Scraped], Iterable[Sample]]:
    return lambda scraped: [({"node": node.name}, read(node)) for node in scraped.snapshot.nodes]


def _migration(read: Callable[[Migration], float | None]) -> Callable[[Scraped], Iterable[Sample]]:
    """Of the one under way; nothing if there is none."""

    def samples(scraped: Scraped) -> Iterator[Sample]:
        migration = scraped.snapshot.migration
        if migration is not None and not migration.is_over:
            yield {}, read(migration)

    return samples


def _outcomes(scraped: Scraped) -> Iterator[Sample]:
    return (({"outcome": outcome}, scraped.outcomes.get(outcome, 0)) for outcome in OUTCOMES)


def _is_moving(snapshot: Snapshot) -> float:
    return float(snapshot.migration is not None and not snapshot.migration.is_over)


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


METRICS: Sequence[Metric] = (
    Metric("elastic_job_up", "gauge", "0 or 1", "whether the job is running", _job(lambda s: s.state == "running")),
    Metric("elastic_rows_total", "counter", "rows", "rows taken in, in this life of the job", _job(lambda s: s.rows)),
    Metric("elastic_last_batch", "gauge", "batch id", "newest batch that counts", _job(lambda s: s.last_batch)),
    Metric(
        "elastic_published_batch",
        "gauge",
        "batch id",
        "newest batch whose results are visible",
        _job(lambda s: s.published_batch),
    ),
    Metric(
        "elastic_saved_batch",
        "gauge",
        "batch id",
        "newest batch that all saved states include",
        _job(lambda s: s.saved_batch),
    ),
    Metric("elastic_batches_ahead", "gauge", "batches", "committed and not applied", _job(lambda s: s.batches_ahead)),
    Metric(
        "elastic_batches_allowed",
        "gauge",
        "batches",
        "with so many ahead the source has to wait",
        _job(lambda s: s.batches_allowed),
    ),
    Metric(
        "elastic_trigger_seconds",
        "gauge",
        "seconds",
        "how long Spark's newest trigger took; missing while nothing is new",
        _job(lambda s: _seconds(s.response.trigger_ms)),
    ),
    Metric(
        "elastic_apply_lag_seconds",
        "gauge",
        "seconds",
        "longest time from commit to results in the last half second; missing while nothing is applied",
        _job(lambda s: _seconds(s.response.apply_lag_ms)),
    ),
    Metric(
        "elastic_sink_failed",
        "gauge",
        "0 or 1",
        "whether results no longer reach the sink",
        _job(lambda s: s.sink_error is not None),
    ),
    Metric(
        "elastic_problems",
        "gauge",
        "problems",
        "what is wrong with a job that runs nevertheless; `GET /health` says what",
        _job(lambda s: len(s.problems)),
    ),
    Metric("elastic_epoch", "gauge", "number", "version of the assignment", _job(lambda s: s.epoch)),
    Metric("elastic_nodes", "gauge", "nodes", "nodes that own tasks", _job(lambda s: len(set(s.owners)))),
    Metric(
        "elastic_node_losses_total", "counter", "nodes", "nodes lost in this life of the job", _job(lambda s: s.losses)
    ),
    Metric(
        "elastic_node_recoveries_total",
        "counter",
        "nodes",
        "nodes that came back in this life of the job",
        _job(lambda s: s.recoveries),
    ),
    Metric("elastic_node_up", "gauge", "0 or 1", "whether the node serves", _nodes(lambda n: n.serving)),
    Metric("elastic_node_tasks", "gauge", "tasks", "tasks that the node owns", _nodes(lambda n: n.tasks)),
    Metric(
        "elastic_node_utilisation_ratio",
        "gauge",
        "0 to 1",
        "share of the last 10 seconds in which the node worked",
        _nodes(lambda n: n.utilisation),
    ),
    Metric(
        "elastic_node_work_seconds",
        "gauge",
        "seconds",
        "work of the node's tasks in the last minute",
        _nodes(lambda n: n.work),
    ),
    Metric(
        "elastic_node_work_cap_seconds",
        "gauge",
        "seconds",
        "the most work a node may carry",
        _job(lambda s: s.cap),
    ),
    Metric("elastic_node_state_bytes", "gauge", "bytes", "state of the node's tasks", _nodes(lambda n: n.state_bytes)),
    Metric(
        "elastic_node_staged_bytes",
        "gauge",
        "bytes",
        "rows that were brought to the node and are not applied",
        _nodes(lambda n: n.staged_bytes),
    ),
    Metric(
        "elastic_node_waiting_steps",
        "gauge",
        "steps",
        "committed steps that the node has not taken",
        _nodes(lambda n: n.waiting_steps),
    ),
    Metric(
        "elastic_node_step_seconds",
        "gauge",
        "seconds",
        "how long the step that the node is taking has been running; 0 between two steps",
        _nodes(lambda n: 0.0 if n.step is None else n.step.seconds),
    ),
    Metric(
        "elastic_node_step_overdue",
        "gauge",
        "0 or 1",
        "whether that is far longer than usual",
        _nodes(lambda n: n.step is not None and n.step.overdue),
    ),
    Metric(
        "elastic_node_loading_units",
        "gauge",
        "units",
        "units whose state is on its way to the node",
        _nodes(lambda n: n.loading),
    ),
    Metric("elastic_migration_running", "gauge", "0 or 1", "whether a migration is under way", _job(_is_moving)),
    Metric("elastic_migrations_total", "counter", "migrations", "those that ended since the server started", _outcomes),
    Metric(
        "elastic_migration_tasks",
        "gauge",
        "tasks",
        "tasks that the migration under way moves",
        _migration(lambda m: m.progress.tasks),
    ),
    Metric(
        "elastic_migration_tasks_done",
        "gauge",
        "tasks",
        "those that have arrived",
        _migration(lambda m: m.progress.tasks_done),
    ),
    Metric(
        "elastic_migration_bytes",
        "gauge",
        "bytes",
        "state that the migration under way moves",
        _migration(lambda m: m.progress.bytes),
    ),
    Metric(
        "elastic_migration_bytes_done",
        "gauge",
        "bytes",
        "state that has arrived",
        _migration(lambda m: m.progress.bytes_done),
    ),
    Metric(
        "elastic_migration_seconds",
        "gauge",
        "seconds",
        "how long the migration under way has taken",
        _migration(lambda m: m.progress.seconds),
    ),
)


def exposition(jobs: Sequence[Scraped]) -> str:
    """In Prometheus' text format, version 0.0.4."""
    lines: list[str] = []
    for metric in METRICS:
        lines += [f"# HELP {metric.name} {metric.help} ({metric.unit})", f"# TYPE {metric.name} {metric.kind}"]
        for scraped in jobs:
            for labels, value in metric.read(scraped):
                if value is not None:
                    named = {"job_name": scraped.snapshot.job, **labels}  # Prometheus has a label job of its own
                    lines.append(f"{metric.name}{{{_rendered(named)}}} {float(value)!r}")
    return "\n".join(lines) + "\n"


def _rendered(labels: Labels) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
