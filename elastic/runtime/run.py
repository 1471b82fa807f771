"""The front door: `run` turns a streaming DataFrame and an operator into a running job."""

import os
import re
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyspark import SparkContext
from pyspark.sql import DataFrame

from elastic.control import Autoscaling
from elastic.errors import InvalidSetting, NameTaken
from elastic.operators import Operator, Stage
from elastic.operators.stages import stages_of
from elastic.results import Description, ResultLog, Sink, open_sink
from elastic.routing import routing_from_json
from elastic.runtime import admission
from elastic.runtime.access import StoreAccess
from elastic.runtime.controller import Controller, JobParts
from elastic.runtime.controller.nodes import Nodes
from elastic.runtime.intake.batches import Intake
from elastic.runtime.intake.source_offsets import SourceOffsets
from elastic.runtime.job import Job
from elastic.runtime.launcher import SparkLauncher
from elastic.runtime.node.specification import NodeSpecification
from elastic.runtime.pipeline import emitting, runners
from elastic.runtime.protocol import Coordinator
from elastic.runtime.restart import find_published, recover_manifest
from elastic.runtime.slots import check_slots
from elastic.runtime.sources.registration import register_job
from elastic.runtime.wire import wire_token
from elastic.secret import application_secret
from elastic.settings import Settings
from storage import Secret, Store
from storage.state import Collector, Manifests

if TYPE_CHECKING:
    from migration import ValueFunction  # brings the planner with it

_running: dict[tuple[str, str], Job] = {}
_starting = threading.Lock()


def run(
    df: DataFrame,
    *,
    key: str | Sequence[str],
    operator: Operator | Stage | Sequence[Operator | Stage],
    name: str,
    store: str,
    tasks: int = 64,
    nodes: int = 4,
    sink: str | Sink = "store",
    trigger: Mapping[str, Any] | None = None,
    event_time: str | None = None,
    watermark_delay: str | None = None,
    checkpoint: str | None = None,
    store_settings: Mapping[str, Any] | None = None,
    autoscale: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Job:
    """Start a job, or go on with the one of this name in this store.

    `operator` is one operator, keyed by the columns `key` of `df`, or several in order. `store` is the
    URL of a folder or bucket that the driver and every executor can reach. `trigger` is what
    `DataStreamWriter.trigger` takes, `{"processingTime": "1 second"}`; `checkpoint` is where Spark keeps its offsets,
    by default beside the state in a file store. `autoscale` is what `Job.autoscale` takes, `{"ceiling": 8}`; without it
    the number of nodes stays as it is until somebody changes it. `settings` are those of `elastic.settings.Settings`.
    """
    admission.check_frame(df)
    spark = df.sparkSession
    admission.check_name(name)
    tasks, nodes = admission.check_counts(tasks, nodes)
    admission.check_event_time(df, event_time, watermark_delay)
    resolved = Settings.resolve(settings, lambda key: spark.conf.get(key, None), os.environ)
    delay_ms = 0 if watermark_delay is None else _milliseconds(watermark_delay)
    pipeline = admission.describe(df, stages_of(operator, key), tasks)
    autoscaling = None if autoscale is None else Autoscaling.of(tasks, **autoscale)
    admission.check_cluster(spark)
    access = StoreAccess(store, dict(store_settings or {}), application_secret(resolved.secret, os.environ).reveal())
    opened = admission.open_store(access)
    try:
        location = checkpoint or _beside(store, name)
        check_room = partial(_check_room, spark.sparkContext, resolved, (store, name))
        check_room(nodes if autoscaling is None else max(nodes, autoscaling.ceiling), starting=True)
        with _starting:
            _refuse_second(store, name)
            to = sink if not isinstance(sink, str) else open_sink(sink)
            job = _start(df, name, pipeline, nodes, resolved, access, opened, to, event_time, delay_ms, check_room)
            _running[store, name] = job
    except BaseException:
        opened.close()
        raise
    job.start(location, trigger or {})
    if autoscaling is not None:
        job.begin_autoscaling(autoscaling)
    return job


def _start(
    df: DataFrame,
    name: str,
    pipeline: Description,
    nodes: int,
    settings: Settings,
    access: StoreAccess,
    opened: Store,
    sink: Sink,
    event_time: str | None,
    delay_ms: int,
    check_room: Callable[[int], None],
) -> Job:
    spark = df.sparkSession
    secret = access.secret
    manifests = Manifests(opened, secret, name)
    manifest = recover_manifest(manifests, name, pipeline, event_time, nodes)
    routing = replace(routing_from_json(manifest.assignment), epoch=manifest.epoch)  # type: ignore[type-var]
    pipeline.save(opened, secret, name)
    results = ResultLog(opened, secret, name, compression=settings.compression) if sink.logs else None
    published = find_published(manifest, results, name)
    names = list(routing.assignment.nodes)  # type: ignore[attr-defined]
    check_room(len(names))  # it goes on with those that it had, however many were asked for
    stages = runners(pipeline, settings.on_error)
    coordinator = Coordinator(
        manifest, routing, published, emitting(stages), names, skips_poison=settings.on_error == "skip"
    )
    local = admission.is_local(spark.sparkContext.master or "")
    host = settings.host or ("127.0.0.1" if local else str(spark.conf.get("spark.driver.host")))
    token = wire_token(secret, secrets.token_hex(16))
    template = NodeSpecification(
        job=name,
        node="",
        incarnation="",
        controller="",
        host="127.0.0.1" if local else None,
        token=token,
        store=access,
        pipeline=pipeline,
        routing=routing,
        settings=replace(settings, secret=None),
        keeps_results=results is not None,
    )
    cluster = Nodes(
        names,
        SparkLauncher(spark.sparkContext, template),
        host=host,
        token=token,
        node_timeout_seconds=settings.node_timeout_seconds,
        node_start_seconds=settings.node_start_seconds,
    )
    collector = Collector(opened, secret, name)
    parts = JobParts(name, manifests, results, collector, coordinator, settings)
    controller = Controller(parts, cluster)
    intake = Intake(
        name,
        controller,
        access,
        replace(settings, secret=None),
        pipeline.stages[0].key,
        stages[0].combiner,
        token,
        SourceOffsets(spark),
        event_time,
        delay_ms,
    )
    register_job(spark, name, access)
    return Job(
        name,
        df,
        pipeline,
        controller,
        cluster,
        intake,
        opened,
        sink,
        results,
        table=partial(_table, opened, secret),
        check_room=check_room,
        on_end=_forget,
    )


def _table(store: Store, secret: Secret, name: str) -> "ValueFunction":
    # Imported late: it brings a compiler with it, and few jobs plan with foresight.
    from mdp import ValueTable

    return ValueTable.read(store, name, secret=secret)


def _beside(store: str, name: str) -> str:
    """A folder for Spark's offsets next to the state."""
    parts = urlsplit(store)
    if parts.scheme != "file":
        raise InvalidSetting(
            "checkpoint", None, f"Spark cannot keep its offsets in {parts.scheme}: by itself; name a folder"
        )
    return str(Path(unquote(parts.path)) / "spark-checkpoints" / name)


def _milliseconds(text: str) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(millisecond|second|minute|hour|day)s?\s*", text)
    if match is None:
        raise InvalidSetting("watermark_delay", text, "it must be like '10 seconds' or '2 minutes'")
    units = {"millisecond": 1, "second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
    return round(float(match[1]) * units[match[2]])


def _refuse_second(store: str, name: str) -> None:
    if (store, name) in _running:
        raise NameTaken(name)


def _check_room(
    context: SparkContext, settings: Settings, place: tuple[str, str], nodes: int, *, starting: bool = False
) -> None:
    """Count the nodes of the other jobs of this process too: they hold slots of the same Spark application."""
    others = sum(job.node_count for other, job in list(_running.items()) if other != place)
    wait_seconds = settings.node_start_seconds if starting else 0.0
    check_slots(context, nodes, settings, other_nodes=others, wait_seconds=wait_seconds)


def _forget(job: Job) -> None:
    """Without the lock: a stop must not wait while another job starts."""
    for place in [place for place, running in list(_running.items()) if running is job]:
        _running.pop(place, None)
