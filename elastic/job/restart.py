"""Where a job continues: the manifest it takes over, what must not have changed, and which results are published."""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from elastic.errors import IncompatibleRestart, MissingUpgrade, StateNewer
from elastic.results import Description, ResultLog
from elastic.routing import (
    HASH,
    Grouping,
    Groupings,
    PartialGrouping,
    Routing,
    ShuffleGrouping,
    TableGrouping,
    parse_grouping,
)
from migration import Assignment
from storage.state import Manifest, Manifests, UnitId

_log = logging.getLogger(__name__)
_CHECKED_APART = ("columns", "version", "versions")


def recover_manifest(manifests: Manifests, name: str, pipeline: Description, nodes: int) -> Manifest:
    """Take the job over from any other driver; returns what is committed, or a first manifest for a new job."""
    identity = job_identity(pipeline)
    latest = manifests.latest()
    if latest is not None:
        check_identity(name, latest.meta, identity)
        check_groupings(name, latest, pipeline)
        identity["versions"] = continue_versions(name, latest.meta, pipeline)
    protected = {number: stage.protected for number, stage in enumerate(pipeline.stages) if stage.protected}
    groupings = Groupings.of_kinds(pipeline.tasks, [stage.grouping for stage in pipeline.stages], protected)
    routing = Routing(Assignment.even(tasks=pipeline.tasks, nodes=nodes), groupings)
    units = [unit for stage in range(len(pipeline.stages)) for unit in routing.units(stage)]
    recovered = manifests.recover(first=Manifest.first(units, routing.to_json(), meta=identity))
    if is_imported(recovered):
        recovered = manifests.commit(lambda current: _assign_nodes(current, nodes))
    if regroup(Routing.from_json(recovered.assignment).groupings, groupings) is not None:
        recovered = manifests.commit(lambda current: commit_groupings(current, groupings, units))
    if all(recovered.meta.get(what) == value for what, value in identity.items()):
        return recovered
    return manifests.commit(lambda current: replace(current, meta={**current.meta, **identity}))


def is_imported(manifest: Manifest) -> bool:
    """Whether the job has imported state and has not run: its nodes are for its first life to say."""
    return "imported" in manifest.meta and manifest.epoch == 0 and not manifest.times and manifest.last_batch < 0


def _assign_nodes(manifest: Manifest, nodes: int) -> Manifest:
    routing = Routing.from_json(manifest.assignment)
    even = Assignment.even(tasks=routing.groupings.tasks, nodes=nodes)
    return replace(manifest, epoch=1, assignment=routing.with_assignment(even, 1).to_json())


def check_groupings(name: str, manifest: Manifest, pipeline: Description) -> None:
    """Raise `IncompatibleRestart` if a stage was grouped by a table and is not any more: keys live where it says.

    A stage that was grouped by hash may have a table now; that of a partial stage is partial in all runs of a job. A
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
    that is declared as it was. Keys that are protected from now on, or no longer, move with the first batches.
    """
    stages = range(max(len(stored.by_stage), len(declared.by_stage)))
    by_stage = tuple(_continue_with(stored[stage], declared[stage]) for stage in stages)
    return by_stage if any(stored[stage] != one for stage, one in enumerate(by_stage)) else None


def _continue_with(stored: Grouping, declared: Grouping) -> Grouping:
    if isinstance(stored, PartialGrouping) and isinstance(declared, PartialGrouping):
        return stored if stored.declared == declared.declared else declared
    if isinstance(declared, TableGrouping):
        table = stored if isinstance(stored, TableGrouping) else TableGrouping()
        return table.protect(declared.protected)
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


def job_identity(pipeline: Description) -> dict[str, Any]:
    """Return the properties that stored state, watermarks and logged rows depend on, as JSON."""
    return {
        "tasks": pipeline.tasks,
        "version": pipeline.version,
        "versions": [[stage.operator.version] for stage in pipeline.stages],
        "key": [list(stage.key) for stage in pipeline.stages],
        "key types": [[type_name(stage.input_schema.field(k).type) for k in stage.key] for stage in pipeline.stages],
        "event time": _event_times(pipeline),
        "columns": _columns(pipeline),
        "graph": _edges(pipeline),
    }


def _event_times(pipeline: Description) -> Any:
    """Return the column of event times; of several inputs each, by name."""
    if len(pipeline.inputs) == 1:
        return pipeline.inputs[0].event_time
    return {spec.name: spec.event_time for spec in pipeline.inputs}


def _columns(pipeline: Description) -> dict[str, str]:
    if len(pipeline.inputs) == 1:
        return {field.name: type_name(field.type) for field in pipeline.inputs[0].schema}
    return {f"{spec.name}.{field.name}": type_name(field.type) for spec in pipeline.inputs for field in spec.schema}


def _edges(pipeline: Description) -> Any:
    """Return what each stage reads; None for a chain with one input, which is what versions up to 0.2 knew."""
    sources = [list(pipeline.sources_of(number)) for number in range(len(pipeline.stages))]
    names = [stage.name for stage in pipeline.stages]
    inputs = [spec.name for spec in pipeline.inputs]
    if len(inputs) == 1 and sources == [inputs, *([name] for name in names[:-1])]:
        return None
    return dict(zip(names, map(sorted, sources), strict=True))


def check_identity(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise `IncompatibleRestart` if state would be lost or misread. Columns may be added; those there were must stay.

    For versions of operators see `continue_versions`. Version 0.1 did not store key types, event time and columns, and
    versions up to 0.2 did not store the graph.
    """
    before = {"graph": None, **before}
    for what, value in now.items():
        if what in before and what not in _CHECKED_APART and before[what] != value:
            raise IncompatibleRestart(name, what, before[what], value)
    for column, kind in before.get("columns", {}).items():
        found = now["columns"].get(column)
        if found != kind:
            raise IncompatibleRestart(name, f"column {column!r} of type", kind, found)


def continue_versions(name: str, before: Mapping[str, Any], pipeline: Description) -> list[list[str]]:
    """Return by stage the versions of the operators in all runs of the job, oldest first, with those of this one.

    Stored states may be of any of them. Raises `StateNewer` or `MissingUpgrade` if the operator of this life cannot
    read them.
    """
    found = []
    for stage, versions in zip(pipeline.stages, _read_stored_versions(name, before, pipeline), strict=True):
        operator, now = type(stage.operator).__name__, stage.operator.version
        if now in versions[:-1]:
            raise StateNewer(name, stage.name, operator, versions[-1], now)
        if now != versions[-1] and not stage.operator.can_upgrade:
            raise MissingUpgrade(name, stage.name, operator, versions[-1], now)
        found.append(versions if now == versions[-1] else [*versions, now])
    return found


def add_stored_versions(pipeline: Description, manifest: Manifest) -> Description:
    """Return the pipeline with the versions of states that do not name theirs: those of the job's first life."""
    stages = zip(pipeline.stages, manifest.meta["versions"], strict=True)
    return replace(pipeline, stages=tuple(replace(stage, first_version=versions[0]) for stage, versions in stages))


def _read_stored_versions(name: str, before: Mapping[str, Any], pipeline: Description) -> list[list[str]]:
    """Return the versions by stage; releases up to 0.2 stored one text with the names and versions of all stages."""
    text = before.get("version", pipeline.version)
    pattern = " ".join(f"{re.escape(stage.name)}=(.*)" for stage in pipeline.stages)
    matched = re.fullmatch(pattern, text, re.DOTALL)
    if matched is None:
        raise IncompatibleRestart(name, "version", text, pipeline.version)
    versions: list[list[str]] = before.get("versions", [[version] for version in matched.groups()])
    return versions


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


def type_name(kind: pa.DataType) -> str:
    """The type as far as values depend on it: neither the session's time zone nor the width of offsets matters."""
    return re.sub(r"tz=[^\]]+", "tz", str(kind)).replace("large_", "")
