"""Puts a job together: takes over what the store has of it, and connects driver, ingest, stream and sink."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from elastic.core.coordinator import Coordinator
from elastic.core.ids import Batch
from elastic.core.pipeline import count_standbys, emitting, runners
from elastic.driver.context import JobContext
from elastic.driver.driver import Driver
from elastic.driver.launcher import Launcher
from elastic.ingest.batch_ingest import BatchIngest, BatchSource, IngestPlan
from elastic.job.job import Job
from elastic.job.restart import find_published, recover_manifest
from elastic.job.stream import Stream
from elastic.node.spec import NodeSpec
from elastic.results import ResultLog, Sink, SinkWriter
from elastic.routing import Routing
from storage.state import Manifests

AnyJob = TypeVar("AnyJob", bound=Job)


@dataclass(frozen=True)
class Surroundings:
    """What a job stands on: where its nodes run, where its batches come from, and how many nodes there is room for."""

    launcher: Callable[[NodeSpec], Launcher]  # gets what all nodes have in common
    source: BatchSource
    stream: Callable[[BatchIngest], Stream]
    check_room: Callable[[int], None]
    on_end: Callable[[Job], None]


def assemble_job(
    context: JobContext,
    surroundings: Surroundings,
    sink: Sink,
    *,
    nodes: int,
    event_time: str | None = None,
    watermark_delay_ms: int = 0,
    job_class: Callable[..., AnyJob],
) -> AnyJob:
    """Return a job that is not started. It continues with the nodes that it had; `nodes` is for a new one."""
    name, pipeline, settings = context.name, context.pipeline, context.settings
    manifests = Manifests(context.store, context.secret, name)
    manifest = recover_manifest(manifests, name, pipeline, event_time, nodes)
    routing = replace(Routing.from_json(manifest.assignment), epoch=manifest.epoch)
    pipeline.save(context.store, context.secret, name)
    results = None
    if sink.needs_log:
        results = ResultLog(context.store, context.secret, name, compression=settings.compression)
    published = find_published(manifest, results, name)
    names = list(routing.assignment.nodes)
    surroundings.check_room(len(names))
    stages = runners(pipeline, settings.on_error)
    skips = settings.on_error == "skip"
    coordinator = Coordinator(
        manifest,
        routing,
        Batch(published),
        emitting(stages),
        names,
        standbys=count_standbys(pipeline, settings.standbys),
        skips_poison=skips,
    )
    common = NodeSpec(
        job=name,
        node="",
        incarnation="",
        driver="",
        host=context.node_host,
        token=context.token,
        store=context.access,
        pipeline=pipeline,
        settings=settings,
        keeps_results=results is not None,
    )
    sink_writer = _make_sink_writer(context, sink, results)
    driver = Driver(
        context,
        coordinator,
        manifests,
        results,
        surroundings.launcher(common),
        on_published=(lambda: None) if sink_writer is None else sink_writer.notify,
        needed_from=(lambda: None) if sink_writer is None else lambda: sink_writer.next_batch,
    )
    plan = IngestPlan(pipeline.stages[0].grouped_by, stages[0].combiner, event_time, watermark_delay_ms)
    ingest = BatchIngest(context, driver, surroundings.source, plan)
    return job_class(
        context,
        driver,
        ingest,
        surroundings.stream(ingest),
        sink,
        results,
        sink_writer,
        check_room=surroundings.check_room,
        on_end=surroundings.on_end,
    )


def _make_sink_writer(context: JobContext, sink: Sink, results: ResultLog | None) -> SinkWriter | None:
    stages = reversed(context.pipeline.stages)
    stage = next((one.name for one in stages if one.output_schema is not None), None)
    if results is None or stage is None or not sink.needs_writer:
        return None
    return SinkWriter(results, stage, sink, retry_seconds=context.settings.store_retry_seconds)
