"""Puts a job together: takes over what the store has of it, and connects driver, ingest, stream and sinks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from elastic.core.coordinator import Coordinator
from elastic.core.ids import Batch
from elastic.core.pipeline import (
    count_guest_standbys,
    count_standbys,
    create_runners,
    find_emitting_stages,
    select_stateless_stages,
)
from elastic.driver.context import JobContext
from elastic.driver.driver import Driver
from elastic.driver.launcher import Launcher
from elastic.ingest.batch_ingest import BatchIngest, BatchSource, IngestPlan
from elastic.job.job import Job
from elastic.job.restart import add_stored_versions, find_published, recover_manifest
from elastic.job.stream import Stream
from elastic.node.spec import NodeSpec
from elastic.results import ResultLog
from elastic.results.stage_sinks import StageSinks
from elastic.routing import Routing
from storage.state import Manifests

AnyJob = TypeVar("AnyJob", bound=Job)


@dataclass(frozen=True)
class Surroundings:
    """The environment of a job: the launcher of its nodes, the source of its batches, and the room for nodes."""

    launcher: Callable[[NodeSpec], Launcher]  # gets what all nodes have in common
    source: BatchSource
    stream: Callable[[BatchIngest], Stream]
    check_room: Callable[[int], None]
    on_end: Callable[[Job], None]
    # Of each input, where its columns come under other names: pairs of that name and the name in the job.
    slots: tuple[tuple[tuple[str, str], ...], ...] = ()


def assemble_job(
    context: JobContext,
    surroundings: Surroundings,
    sinks: StageSinks,
    *,
    nodes: int,
    job_class: Callable[..., AnyJob],
) -> AnyJob:
    """Return a job that is not started. It continues with the nodes that it had; `nodes` is for a new one."""
    name, pipeline, settings = context.name, context.pipeline, context.settings
    manifests = Manifests(context.store, context.secret, name)
    manifest = recover_manifest(manifests, name, pipeline, nodes)
    routing = replace(Routing.from_json(manifest.assignment), epoch=manifest.epoch)
    pipeline = add_stored_versions(pipeline, manifest)
    pipeline.save(context.store, context.secret, name)
    results = None
    if sinks.needs_log:
        results = ResultLog(context.store, context.secret, name, compression=settings.compression)
    published = find_published(manifest, results, name)
    names = list(routing.assignment.nodes)
    surroundings.check_room(len(names))
    stages = create_runners(pipeline, settings.on_error)
    skips = settings.on_error == "skip"
    coordinator = Coordinator(
        manifest,
        routing,
        Batch(published),
        find_emitting_stages(stages),
        names,
        standbys=count_standbys(pipeline, settings.standbys),
        standbys_of_guests=count_guest_standbys(pipeline, settings.standbys),
        stateless=select_stateless_stages(pipeline),
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
    sink_writers = sinks.make_writers(
        results, retry_seconds=settings.store_retry_seconds, sink_retry_seconds=settings.sink_retry_seconds
    )
    driver = Driver(
        context,
        coordinator,
        manifests,
        results,
        surroundings.launcher(common),
        on_published=sink_writers.notify,
        needed_from=lambda: sink_writers.needed_from,
    )
    plan = IngestPlan.of(pipeline.inputs, stages, surroundings.slots)
    ingest = BatchIngest(context, driver, surroundings.source, plan)
    return job_class(
        context,
        driver,
        ingest,
        surroundings.stream(ingest),
        sinks,
        results,
        sink_writers,
        check_room=surroundings.check_room,
        on_end=surroundings.on_end,
    )
