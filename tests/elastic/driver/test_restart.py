"""What a job may change between two runs, and where it continues."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from elastic.core.pipeline import create_runners
from elastic.errors import IncompatibleRestart, MissingUpgrade, StateNewer
from elastic.job.restart import add_stored_versions, check_identity, find_published, job_identity, recover_manifest
from elastic.operators import CountByKey
from elastic.results import Description, ResultLog, StageDescription
from elastic.routing import KeyTable, PartialGrouping, Routing, TableGrouping
from migration import Assignment
from storage import Secret
from storage.state import Manifest, Manifests, SavedState, UnitId
from storage.stores.memory import MemoryStore

SECRET = Secret.of("a secret for tests only")
COLUMNS = {"key": pa.int32(), "value": pa.int64(), "ts": pa.timestamp("us", "UTC")}


def pipeline(**changes: Any) -> Description:
    schema = pa.schema({**COLUMNS, **changes})
    return Description((StageDescription("count", ("key",), CountByKey(), schema),), 8, "count=1")


def timed(described: Description, event_time: str | None = "ts") -> Description:
    """Return the description of a job whose only input has this column of event times."""
    return replace(described, inputs=(replace(described.inputs[0], event_time=event_time),))


def refuse(now: Description, event_time: str | None = "ts") -> IncompatibleRestart:
    with pytest.raises(IncompatibleRestart) as caught:
        check_identity("counts", job_identity(timed(pipeline())), job_identity(timed(now, event_time)))
    return caught.value


@pytest.mark.parametrize("kind", [pa.int64(), pa.int16(), pa.string(), pa.float64(), pa.decimal128(10, 2)])
def test_a_changed_key_type_is_refused(kind: pa.DataType) -> None:
    error = refuse(pipeline(key=kind))
    assert (error.what, error.before, error.now) == ("key types", [["int32"]], [[str(kind)]])


def test_binary_keys_are_not_string_keys() -> None:
    with pytest.raises(IncompatibleRestart):
        check_identity("counts", job_identity(pipeline(key=pa.string())), job_identity(pipeline(key=pa.binary())))


@pytest.mark.parametrize("event_time", [None, "value"])
def test_another_event_time_column_is_refused(event_time: str | None) -> None:
    assert refuse(pipeline(), event_time).what == "event time"


def test_a_column_of_another_type_or_a_missing_one_is_refused() -> None:
    assert "'value'" in str(refuse(pipeline(value=pa.float64())))
    fewer = Description(
        (StageDescription("count", ("key",), CountByKey(), pa.schema({**COLUMNS}).remove(1)),), 8, "count=1"
    )
    assert refuse(fewer).now is None


@pytest.mark.parametrize(
    "changes", [{}, {"more": pa.string()}, {"ts": pa.timestamp("us", "Europe/Berlin")}, {"key": pa.int32()}]
)
def test_more_columns_and_another_time_zone_are_accepted(changes: dict[str, pa.DataType]) -> None:
    check_identity("counts", job_identity(timed(pipeline())), job_identity(timed(pipeline(**changes))))


def test_large_strings_are_strings() -> None:
    before, now = pipeline(key=pa.string()), pipeline(key=pa.large_string())
    check_identity("counts", job_identity(before), job_identity(now))


def test_a_job_of_version_0_1_is_accepted_and_then_remembers_its_types() -> None:
    store = MemoryStore()
    old = {"tasks": 8, "version": "count=1", "key": [["key"]]}
    routing = Routing.by_hash(Assignment.even(tasks=8, nodes=2))
    Manifests(store, SECRET, "counts").recover(Manifest.first(routing.units(0), routing.to_json(), meta=old))
    recover_manifest(Manifests(store, SECRET, "counts"), "counts", pipeline(), nodes=2)
    with pytest.raises(IncompatibleRestart):
        recover_manifest(Manifests(store, SECRET, "counts"), "counts", pipeline(key=pa.int64()), nodes=2)


def test_a_refused_restart_takes_nothing_over() -> None:
    store = MemoryStore()
    owner = Manifests(store, SECRET, "counts")
    recover_manifest(owner, "counts", pipeline(), nodes=2)
    with pytest.raises(IncompatibleRestart):
        recover_manifest(Manifests(store, SECRET, "counts"), "counts", pipeline(key=pa.int64()), nodes=2)
    owner.commit_batch(0, [])  # is still the owner


class Upgrading(CountByKey):
    """Reads state of any older version."""

    def __init__(self, version: str) -> None:
        super().__init__()
        self.version = version  # type: ignore[misc]

    def upgrade(self, old_version: str, value: Any) -> Any:
        return [old_version, value]


def of_version(version: str) -> Description:
    [stage] = pipeline().stages
    return Description((replace(stage, operator=Upgrading(version)),), 8, f"count={version}")


def test_states_that_name_no_version_are_of_the_version_that_the_job_had_when_versions_were_not_stored() -> None:
    store = MemoryStore()
    old = {**job_identity(timed(pipeline()))}
    del old["versions"]
    routing = Routing.by_hash(Assignment.even(tasks=8, nodes=2))
    Manifests(store, SECRET, "counts").recover(Manifest.first(routing.units(0), routing.to_json(), meta=old))
    recover(store, of_version("2"))
    manifest = recover(store, of_version("4"))
    assert manifest.meta["versions"] == [["1", "2", "4"]]
    assert manifest.meta["version"] == "count=4"
    [runner] = create_runners(add_stored_versions(of_version("4"), manifest), "fail")
    for meta, found in (({}, "1"), ({"version": "2"}, "2")):
        assert runner.load(SavedState({}, meta), UnitId(0, 0)).value == [found, {}]
    assert runner.load(SavedState({}, {"version": "4"}), UnitId(0, 0)).value == {}


def test_a_version_that_the_job_had_before_is_refused() -> None:
    store = MemoryStore()
    for version in ("1", "3"):
        recover(store, of_version(version))
    with pytest.raises(StateNewer) as caught:
        recover(store, of_version("1"))
    assert (caught.value.before, caught.value.now) == ("3", "1")
    with pytest.raises(MissingUpgrade):
        recover(store, pipeline_of_other_version())
    assert recover(store, of_version("3")).meta["versions"] == [["1", "3"]]


def pipeline_of_other_version() -> Description:
    [stage] = pipeline().stages
    operator = CountByKey()
    operator.version = "5"  # type: ignore[misc]
    return Description((replace(stage, operator=operator),), 8, "count=5")


def test_a_renamed_stage_is_refused() -> None:
    store = MemoryStore()
    recover(store, pipeline())
    [stage] = pipeline().stages
    with pytest.raises(IncompatibleRestart) as caught:
        recover(store, Description((replace(stage, name="other"),), 8, "other=1"))
    assert (caught.value.what, caught.value.before, caught.value.now) == ("version", "count=1", "other=1")


class TestPublished:
    """The published position of a job that changes its sink."""

    def manifest(self, published: int) -> Manifest:
        manifest = Manifest.first(())
        for batch in range(8):
            manifest = manifest.with_batch(batch, 0, True, [], published=published)
        return manifest

    def test_a_job_that_kept_no_results_continues_after_the_batches_it_processed(self) -> None:
        log = ResultLog(MemoryStore(), SECRET, "counts")
        assert find_published(self.manifest(published=5), log, "counts") == 5
        assert log.poll() == range(6)
        log.publish(6, (), 0)

    def test_a_job_whose_newest_results_are_ahead_of_the_manifest_does_not_publish_them_again(self) -> None:
        log = ResultLog(MemoryStore(), SECRET, "counts")
        for batch in range(7):
            log.publish(batch, (), 0)
        assert find_published(self.manifest(published=5), log, "counts") == 6
        assert not log.mark_gap(6)

    def test_batches_that_are_still_in_the_log_are_published_although_the_job_kept_no_results_when_it_stopped(
        self,
    ) -> None:
        assert find_published(self.manifest(published=5), None, "counts") == 7


def grouped(grouping: str) -> Description:
    [stage] = pipeline().stages
    return Description((replace(stage, grouping=grouping),), 8, "count=1")


def recover(store: MemoryStore, description: Description) -> Manifest:
    return recover_manifest(Manifests(store, SECRET, "counts"), "counts", timed(description), 2)


def test_a_stage_grouped_by_a_table_has_guests_for_every_task() -> None:
    manifest = recover(MemoryStore(), grouped("table"))
    assert sorted(manifest.units) == [UnitId(0, task, guests) for guests in (False, True) for task in range(8)]
    assert Routing.from_json(manifest.assignment).groupings.by_stage == (TableGrouping(),)


def test_a_job_grouped_by_hash_may_continue_with_a_table() -> None:
    store = MemoryStore()
    before = recover(store, pipeline())
    manifests = Manifests(store, SECRET, "counts")
    manifests.recover()
    manifests.commit_batch(0, ())
    manifest = recover(store, grouped("table"))
    assert set(manifest.units) > set(before.units)
    assert [manifest.units.through(UnitId(0, 3, guests)) for guests in (False, True)] == [-1, 0]
    assert manifest.low_water_mark == -1
    assert manifest.epoch == 1
    again = recover(store, grouped("table"))
    assert (again.epoch, again.assignment, again.units) == (1, manifest.assignment, manifest.units)


def test_a_table_outlives_a_restart() -> None:
    store = MemoryStore()
    recover(store, grouped("table"))
    table = TableGrouping(KeyTable.from_entries({17: 3}))
    manifests = Manifests(store, SECRET, "counts")
    manifests.recover()
    manifests.commit(
        lambda current: replace(
            current, assignment=Routing.from_json(current.assignment).with_groupings([table], 1).to_json(), epoch=1
        )
    )
    manifest = recover(store, grouped("table"))
    assert Routing.from_json(manifest.assignment).groupings.by_stage == (table,)


def protecting(*hashes: int) -> Description:
    described = pipeline()
    return replace(described, stages=(replace(described.stages[0], grouping="table", protected=hashes),))


def groupings_in(manifest: Manifest) -> Any:
    return Routing.from_json(manifest.assignment).groupings.by_stage


def test_the_protected_keys_of_a_new_job_are_in_its_first_table() -> None:
    [grouping] = groupings_in(recover(MemoryStore(), protecting(3, 21)))
    assert grouping == TableGrouping(KeyTable.from_entries({3: 3, 21: 5}), (3, 21))


def test_a_job_continues_with_other_protected_keys_and_the_table_that_it_has() -> None:
    store = MemoryStore()
    before = recover(store, protecting(3, 21))
    manifest = recover(store, protecting(3, 30))
    assert groupings_in(manifest) == (TableGrouping(KeyTable.from_entries({3: 3, 21: 5}), (3, 30)),)
    assert manifest.epoch == before.epoch + 1
    assert recover(store, protecting(3, 30)).epoch == manifest.epoch


def test_keys_of_a_job_that_was_grouped_by_hash_are_not_guests_before_they_move() -> None:
    store = MemoryStore()
    recover(store, pipeline())
    assert groupings_in(recover(store, protecting(3))) == (TableGrouping(protected=(3,)),)


def test_a_job_grouped_by_a_table_cannot_continue_by_hash() -> None:
    store = MemoryStore()
    before = recover(store, grouped("table"))
    with pytest.raises(IncompatibleRestart) as caught:
        recover(store, pipeline())
    assert (caught.value.what, caught.value.before, caught.value.now) == ("grouping of stage 'count'", "table", "hash")
    latest = Manifests(store, SECRET, "counts").latest()
    assert latest is not None
    assert latest.number == before.number


def test_a_stage_is_partial_in_all_lives_of_a_job_or_in_none() -> None:
    for first, second in (("hash", "partial"), ("partial:head", "hash"), ("table", "partial"), ("partial", "table")):
        store = MemoryStore()
        recover(store, grouped(first))
        with pytest.raises(IncompatibleRestart) as caught:
            recover(store, grouped(second))
        assert (caught.value.before, caught.value.now) == (first.partition(":")[0], second.partition(":")[0])


def test_which_keys_are_split_outlives_a_restart_unless_it_is_declared_otherwise() -> None:
    store = MemoryStore()
    recover(store, grouped("partial:none"))
    manifests = Manifests(store, SECRET, "counts")
    manifests.recover()
    manifests.commit(
        lambda current: replace(
            current, epoch=1, assignment=Routing.from_json(current.assignment).with_splits(0, "head", 1).to_json()
        )
    )
    again = recover(store, grouped("partial:none"))
    assert Routing.from_json(again.assignment).groupings.by_stage == (PartialGrouping("head", "none"),)
    assert again.epoch == 1
    other = recover(store, grouped("partial:all"))
    assert Routing.from_json(other.assignment).groupings.by_stage == (PartialGrouping("all", "all"),)
    assert other.epoch == 2
