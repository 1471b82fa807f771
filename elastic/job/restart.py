"""Where a job continues: the manifest it takes over, what must not have changed, and which results are published."""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from elastic.errors import IncompatibleRestart
from elastic.results import Description, ResultLog
from elastic.routing import HASH, Grouping, Groupings, PartialGrouping, Routing, ShuffleGrouping, parse_grouping
from migration import Assignment
from storage.state import Manifest, Manifests, UnitId

_log = logging.getLogger(__name__)


def recover_manifest(
    manifests: Manifests, name: str, pipeline: Description, event_time: str | None, nodes: int
) -> Manifest:
    """Take the job over from any other driver; returns what is committed, or a first manifest for a new job."""
    identity = job_identity(pipeline, event_time)
    latest = manifests.latest()
    if latest is not None:
        check_identity(name, latest.meta, identity)
        check_groupings(name, latest, pipeline)
    groupings = Groupings.of_kinds(pipeline.tasks, [stage.grouping for stage in pipeline.stages])
    routing = Routing(Assignment.even(tasks=pipeline.tasks, nodes=nodes), groupings)
    units = [unit for stage in range(len(pipeline.stages)) for unit in routing.units(stage)]
    recovered = manifests.recover(first=Manifest.first(units, routing.to_json(), meta=identity))
    if regroup(Routing.from_json(recovered.assignment).groupings, groupings) is not None:
        recovered = manifests.commit(lambda current: commit_groupings(current, groupings, units))
    if all(recovered.meta.get(what) == value for what, value in identity.items()):
        return recovered
    return manifests.commit(lambda current: replace(current, meta={**current.meta, **identity}))


def check_groupings(name: str, manifest: Manifest, pipeline: Description) -> None:
    """Raise `IncompatibleRestart` if a stage was grouped by a table and is not any more: keys live where it says.

    A stage that was grouped by hash may have a table now; that of a partial stage is partial in all lives of a job. A
    shuffled stage has no state, and may be grouped in another way.
    """
    stored = Routing.from_json(manifest.assignment).groupings
    for number, stage in enumerate(pipeline.stages):
        before, now = stored[number].kind, parse_grouping(stage.grouping).kind
        is_free = before in (HASH.kind, ShuffleGrouping.kind)
        if before != now and (not is_free or now == PartialGrouping.kind):
            raise IncompatibleRestart(name, f"grouping of stage {stage.name!r}", before, now)


def regroup(stored: Groupings, declared: Groupings) -> tuple[Grouping, ...] | None:
    """Return the groupings by stage that the job continues with; None if they are those that are stored.

    What changed while the job ran outlives a restart: the entries of tables, and which keys a partial stage splits, if
    that is declared as it was.
    """
    stages = range(max(len(stored.by_stage), len(declared.by_stage)))
    by_stage = tuple(_continue_with(stored[stage], declared[stage]) for stage in stages)
    return by_stage if any(stored[stage] != one for stage, one in enumerate(by_stage)) else None


def _continue_with(stored: Grouping, declared: Grouping) -> Grouping:
    if isinstance(stored, PartialGrouping) and isinstance(declared, PartialGrouping):
        return stored if stored.declared == declared.declared else declared
    return declared if stored == HASH or isinstance(stored, ShuffleGrouping) else stored


def commit_groupings(manifest: Manifest, declared: Groupings, units: Iterable[UnitId]) -> Manifest:
    """Return the manifest with the groupings of this life, and the units of stages that have guests now."""
    routing = Routing.from_json(manifest.assignment)
    by_stage = regroup(routing.groupings, declared) or routing.groupings.by_stage
    return replace(
        manifest,
        units=manifest.units.with_units(units, manifest.last_batch),
        epoch=manifest.epoch + 1,
        assignment=routing.with_groupings(by_stage, manifest.epoch + 1).to_json(),
    )


def job_identity(pipeline: Description, event_time: str | None) -> dict[str, Any]:
    """What the stored state, its watermark and the logged rows depend on, as JSON."""
    source = pipeline.stages[0].input_schema
    return {
        "tasks": pipeline.tasks,
        "version": pipeline.version,
        "key": [list(stage.key) for stage in pipeline.stages],
        "key types": [[_type_name(stage.input_schema.field(k).type) for k in stage.key] for stage in pipeline.stages],
        "event time": event_time,
        "columns": {field.name: _type_name(field.type) for field in source},
    }


def check_identity(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise `IncompatibleRestart` if state would be lost or misread. Columns may be added; those there were must stay.

    Version 0.1 did not store key types, event time and columns.
    """
    for what, value in now.items():
        if what in before and what != "columns" and before[what] != value:
            raise IncompatibleRestart(name, what, before[what], value)
    for column, kind in before.get("columns", {}).items():
        found = now["columns"].get(column)
        if found != kind:
            raise IncompatibleRestart(name, f"column {column!r} of type", kind, found)


def find_published(manifest: Manifest, results: ResultLog | None, name: str) -> int:
    """The newest batch whose results are published, or were not wanted when it was processed.

    Marks batches that the job processed without keeping results as a gap in the result log.
    """
    if results is None:
        return manifest.last_batch
    in_log = max(results.poll(), default=-1)
    # No committed state includes a batch that was not published: what is below the log can no longer be published.
    published = max(in_log, manifest.published, manifest.low_water_mark)
    if published > in_log:
        gap = results.mark_gap(published)
        _log.warning(
            'job %s has no results for batches %d to %d, which it processed with sink="none"', name, gap[0], gap[-1]
        )
    return published


def _type_name(kind: pa.DataType) -> str:
    """The type as far as values depend on it: neither the session's time zone nor the width of offsets matters."""
    return re.sub(r"tz=[^\]]+", "tz", str(kind)).replace("large_", "")
