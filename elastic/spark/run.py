"""`elastic.run`: start a job on a streaming DataFrame."""

import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from elastic.control import AutoscalerSettings
from elastic.core.pipeline import count_standbys
from elastic.driver.context import JobContext
from elastic.errors import InvalidSetting, JobNameInUse
from elastic.job.assembly import Surroundings, assemble_job
from elastic.job.job import Job
from elastic.operators import Operator, Stage
from elastic.operators.graph import Input, choose_key
from elastic.operators.stages import build_stages
from elastic.portable.importing import create_job_from_rows
from elastic.results import Description
from elastic.results.stage_sinks import SinkChoice, StageSinks
from elastic.secret import application_secret
from elastic.settings import Settings
from elastic.spark import checks
from elastic.spark.inputs import to_inputs, unite
from elastic.spark.job import SparkJob
from elastic.spark.launcher import SparkLauncher
from elastic.spark.sender import SparkSource
from elastic.spark.slots import check_slots
from elastic.spark.sources.registration import register_job
from elastic.spark.stream import SparkStream
from elastic.store_access import StoreAccess
from elastic.wire import FlightNetwork, wire_token
from migration import Assignment, ScatteredAssignment, Standbys, Workload, plan
from storage import Store

_running: dict[tuple[str, str], Job] = {}  # by store and name
_starting = threading.Lock()


def run(
    df: DataFrame | Input | Sequence[Input] | Mapping[str, DataFrame | Input],
    *,
    key: str | Sequence[str] = (),
    operator: Operator | Stage | Sequence[Operator | Stage],
    name: str,
    store: str,
    tasks: int = 64,
    nodes: int = 4,
    sink: SinkChoice = "store",
    trigger: Mapping[str, Any] | None = None,
    event_time: str | None = None,
    watermark_delay: str | None = None,
    checkpoint: str | None = None,
    store_settings: Mapping[str, Any] | None = None,
    autoscale: Mapping[str, Any] | None = None,
    first_rows: DataFrame | None = None,
    initial_state: DataFrame | None = None,
    **settings: Any,
) -> SparkJob:
    """Start a job, or resume the job of this name in this store.

    `df` is a streaming DataFrame, or several inputs: a sequence of `Input`, or a mapping from names to DataFrames or
    inputs. `operator` is one operator, keyed by the columns `key` of `df`, or several in order; a `Stage` among them
    may say which inputs and stages it reads. `store` is the URL of a folder
    or bucket that the driver and every executor can reach. `sink` gets the results of the last stage; a mapping from
    names of stages to sinks, those of each. `trigger` holds the arguments of `DataStreamWriter.trigger`,
    such as `{"processingTime": "1 second"}`. `checkpoint` is the folder for Spark's offsets, by default next to the
    state in a file store. `autoscale` holds the arguments of `Job.autoscale`, such as `{"ceiling": 8}`; without it only
    requests change the number of nodes. `first_rows` is a batch DataFrame with the columns of `df`, whose rows are part
    of the first batch. `initial_state` is a batch DataFrame with a row of state per key, from which a job that the
    store does not have begins; the driver collects it (see `elastic.import_state`). `settings` are those of
    `elastic.settings.Settings`.
    """
    given = to_inputs(df, event_time, watermark_delay)
    spark = given[0].rows.sparkSession
    checks.check_name(name)
    tasks, nodes = checks.check_counts(tasks, nodes)
    if first_rows is not None and len(given) > 1:
        raise InvalidSetting("first_rows", "a DataFrame", "a job with several inputs has none. Leave it out")
    resolved = Settings.resolve(settings, lambda key: spark.conf.get(key, None), os.environ)
    if initial_state is not None:
        checks.check_batch_frame(initial_state)
    stages = build_stages(operator, choose_key(given, key), [each.name for each in given])
    pipeline = checks.describe_job(given, stages, tasks)
    sinks = StageSinks.choose(sink, pipeline)
    frame, slots = unite(sorted(given, key=lambda each: each.name))
    checks.check_trigger(frame, trigger or {})
    autoscaling = None if autoscale is None else AutoscalerSettings.from_arguments(tasks, **autoscale)
    checks.check_cluster(spark)
    access = StoreAccess(store, dict(store_settings or {}), application_secret(resolved.secret, os.environ).reveal())
    opened = checks.open_store(access)
    try:
        location = checkpoint or _default_checkpoint(store, name)
        check_room = partial(_check_room, spark.sparkContext, resolved, (store, name))
        check_room(nodes if autoscaling is None else max(nodes, autoscaling.ceiling), starting=True)
        with _starting:
            _check_not_running(store, name)
            if initial_state is not None:
                create_job_from_rows(opened, access.secret, name, pipeline, initial_state.toArrow)
            surroundings = Surroundings(
                launcher=partial(SparkLauncher, spark.sparkContext),
                source=SparkSource(spark),
                slots=slots,
                stream=lambda ingest: SparkStream(name, frame, ingest, location, trigger or {}, first_rows),
                check_room=check_room,
                on_end=_unregister,
            )
            job = assemble_job(
                _make_context(spark, name, pipeline, resolved, access, opened),
                surroundings,
                sinks,
                nodes=nodes,
                job_class=partial(SparkJob, frame),
            )
            register_job(spark, name, access)
            _running[store, name] = job
    except BaseException:
        opened.close()
        raise
    job.start()
    load_planner = partial(_load_planner, has_standbys=any(count_standbys(pipeline, resolved.standbys)))
    threading.Thread(target=load_planner, name="load-planner", daemon=True).start()
    if autoscaling is not None:
        job.begin_autoscaling(autoscaling)
    return job


def _load_planner(*, has_standbys: bool) -> None:
    """Plan once: the first plan loads compiled loops, half a second of a processor that the first migration needs.

    With standbys also as after a failover, when tasks are scattered and SciPy matches them: another 0.14 s.
    """
    one, two = (Assignment.even(tasks=2, nodes=nodes) for nodes in (1, 2))
    plan(one, 2, Workload.uniform(2))
    if has_standbys:
        plan(two, 1, Workload.uniform(2), standbys=Standbys.place(two, 1))
        even = Assignment.even(tasks=20, nodes=5)
        owners = [owner.replace("node-2", "node-4") for owner in even.owners]
        scattered = ScatteredAssignment.from_owners(owners, even.nodes)
        plan(scattered, 5, Workload.uniform(20), standbys=Standbys.place(scattered, 1))


def _make_context(
    spark: SparkSession, name: str, pipeline: Description, settings: Settings, access: StoreAccess, store: Store
) -> JobContext:
    is_local = checks.is_local(spark.sparkContext.master or "")
    return JobContext(
        name,
        pipeline,
        replace(settings, secret=None),
        access,
        store,
        FlightNetwork(),
        host=settings.host or ("127.0.0.1" if is_local else str(spark.conf.get("spark.driver.host"))),
        node_host="127.0.0.1" if is_local else None,
        token=wire_token(access.secret, secrets.token_hex(16)),
    )


def _check_not_running(store: str, name: str) -> None:
    if (store, name) in _running:
        raise JobNameInUse(name)


def _default_checkpoint(store: str, name: str) -> str:
    """Return a folder for Spark's checkpoint next to the state."""
    parts = urlsplit(store)
    if parts.scheme != "file":
        raise InvalidSetting(
            "checkpoint", None, f"Spark cannot keep its checkpoint in a {parts.scheme}: store. Name a folder for it"
        )
    return str(Path(unquote(parts.path)) / "spark-checkpoints" / name)


def _check_room(
    context: SparkContext, settings: Settings, job_key: tuple[str, str], nodes: int, *, starting: bool = False
) -> None:
    """Raise `TooFewSlots` if Spark has no slots for `nodes` beside the nodes of the other jobs of this process."""
    others = sum(job.slot_count for other, job in list(_running.items()) if other != job_key)
    wait_seconds = settings.node_start_seconds if starting else 0.0
    check_slots(context, nodes, settings, other_slots=others, wait_seconds=wait_seconds)


def _unregister(job: Job) -> None:
    # Without `_starting`: a stop must not wait while another job starts.
    for job_key in [job_key for job_key, running in list(_running.items()) if running is job]:
        _running.pop(job_key, None)
