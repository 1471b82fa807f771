"""Manifests: one sequence of commits, one owner, and nothing committed is lost in a restart or a doubt."""

from dataclasses import replace

import pytest

from storage.codec import Secret
from storage.errors import (
    DamagedObject,
    ForeignObject,
    InvalidStorageInput,
    LeaseClosed,
    NotOwner,
    ObjectMissing,
    StoreUnavailable,
)
from storage.state import (
    BatchTime,
    LogRef,
    Manifest,
    Manifests,
    OpenRound,
    SourceBatch,
    StateManager,
    StateRef,
    UnitId,
    UnitStates,
)
from storage.state.manifests import BATCHES_PER_WHOLE
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Store
from tests.storage.state.fake_stores import FailingStore, MeasuredStore

SECRET = Secret.of("a secret for tests only")
TASKS = [UnitId.from_number(0), UnitId.from_number(1)]


def driver(store: Store) -> Manifests:
    return Manifests(store, SECRET, "counts")


def owner(store: Store) -> Manifests:
    manifests = driver(store)
    manifests.recover(Manifest.first(TASKS, assignment={"node-1": [0, 2]}, meta={"by": "test"}))
    return manifests


def logged(batch: int, round_: int = 0) -> LogRef:
    return replace(LogRef.new(batch, round_, 0), size=10)


def snapshot(store: Store, manifests: Manifests, unit: UnitId, batch: int) -> StateRef:
    """A state in the manifest, as a snapshot puts it there."""
    with manifests.leases.open("snapshot") as lease, StateManager(store, SECRET, "counts") as states:
        ref = states.save(unit, f"state of {unit}", batch=batch, lease=lease)
        manifests.commit(lambda current: current.with_states([ref]))
        return ref


def keys(store: Store) -> list[str]:
    return [entry.key for entry in store.list("operators/counts/manifest/")]


def test_an_operator_that_never_started_has_no_manifest(any_store: Store) -> None:
    assert driver(any_store).latest() is None


def test_what_was_committed_survives_a_restart(any_store: Store) -> None:
    first = owner(any_store)
    log = logged(0)
    first.commit_batch(0, [log])
    ref = snapshot(any_store, first, TASKS[0], batch=0)
    last = first.commit(lambda current: replace(current, epoch=3, assignment={"node-2": [0, 2]}, meta={"x": [1]}))
    restarted = driver(any_store).recover()
    assert restarted == replace(
        last, number=last.number + 1, whole=last.number + 1, previous_whole=last.number, driver_id=restarted.driver_id
    )
    assert restarted.units == {TASKS[0]: ref, TASKS[1]: None}
    assert (restarted.epoch, restarted.assignment, restarted.meta) == (3, {"node-2": [0, 2]}, {"x": [1]})
    assert (restarted.last_batch, restarted.log, restarted.low_water_mark) == (0, (log,), -1)


def test_numbers_count_up_without_gaps(store: MemoryStore) -> None:
    manifests = owner(store)
    manifests.commit_batch(0, [])
    manifests.commit(lambda current: current)
    assert keys(store) == [f"operators/counts/manifest/{number:020d}.manifest" for number in (1, 2, 3)]


def test_a_batch_commit_is_small_however_many_units_there_are(store: MemoryStore) -> None:
    manifests = driver(store)
    manifests.recover(Manifest.first(map(UnitId.from_number, range(4096))))
    manifests.commit_batch(0, [logged(0)])
    whole, batch = (entry.size for entry in store.list("operators/counts/manifest/"))
    assert batch < 1000 < whole


def test_many_batch_commits_are_folded_into_a_whole_manifest_now_and_then() -> None:
    store = MeasuredStore()
    manifests = owner(store)
    logs = [logged(batch) for batch in range(BATCHES_PER_WHOLE + 5)]
    for log in logs:
        manifests.commit_batch(log.batch, [log])
    latest = driver(store).latest()
    assert latest is not None
    assert (latest.log, latest.last_batch) == (tuple(logs), logs[-1].batch)
    assert (latest.number, latest.whole) == (len(logs) + 1, BATCHES_PER_WHOLE + 2)


def test_a_replayed_batch_changes_nothing(store: MemoryStore) -> None:
    manifests = owner(store)
    committed = manifests.commit_batch(0, [logged(0)])
    assert manifests.commit_batch(0, [logged(0)]) == committed
    assert driver(store).recover().log == committed.log


def test_rounds_of_a_batch_are_committed_one_by_one_and_the_last_completes_it(store: MemoryStore) -> None:
    manifests = owner(store)
    logs = [logged(0, 0), logged(0, 1)]
    manifests.commit_batch(0, logs[:1], complete=False)
    manifests.commit_batch(0, logs[1:], round=1, complete=False)
    restarted = driver(store)
    unfinished = restarted.recover()
    assert (unfinished.open_round, unfinished.last_batch, unfinished.log) == (OpenRound(0, 1), -1, tuple(logs))
    assert restarted.commit_batch(0, [logged(0, 1)], round=1) == unfinished
    complete = restarted.commit_batch(0, [], round=2)
    assert (complete.open_round, complete.last_batch, complete.log) == (None, 0, tuple(logs))


@pytest.mark.parametrize("folds", [False, True])
def test_the_log_of_a_round_is_in_the_order_of_replay_whatever_the_order_of_its_commit(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, folds: bool
) -> None:
    if folds:
        monkeypatch.setattr("storage.state.manifests.BATCHES_PER_WHOLE", 0)
    manifests = owner(store)
    logs = [LogRef.new(0, 0, partition, chunk) for partition in range(2) for chunk in range(2)]
    for found in (manifests.commit_batch(0, [logs[2], logs[1], logs[3], logs[0]]), driver(store).latest()):
        assert found is not None
        assert list(found.log) == logs


@pytest.mark.parametrize(("batch", "round_"), [(1, 0), (0, 2), (2, 1)])
def test_rounds_out_of_order_are_refused(store: MemoryStore, batch: int, round_: int) -> None:
    manifests = owner(store)
    manifests.commit_batch(0, [], complete=False)
    with pytest.raises(InvalidStorageInput, match="round 1 of batch 0 is next"):
        manifests.commit_batch(batch, [], round=round_)


def test_logs_of_another_batch_are_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidStorageInput, match="Commit each with its own"):
        owner(store).commit_batch(0, [logged(1)])


def test_a_fenced_driver_commits_nothing_any_more(any_store: Store) -> None:
    old, new = owner(any_store), owner(any_store)
    before = keys(any_store)
    for _ in range(2):
        with pytest.raises(NotOwner, match="run each operator once") as caught:
            old.commit_batch(0, [])
        assert (caught.value.mine, caught.value.theirs) == (1, 2)
        with pytest.raises(NotOwner):
            old.commit(lambda current: current)
        with pytest.raises(NotOwner):
            old.recover()
    assert keys(any_store) == before
    assert new.commit_batch(0, []).last_batch == 0


def test_a_driver_that_slept_until_its_number_was_deleted_is_fenced_too(store: MemoryStore) -> None:
    old, new = owner(store), owner(store)
    latest = new.commit(lambda current: current)
    store.delete(keys(store)[:2])
    with pytest.raises(NotOwner):
        old.commit_batch(0, [])
    assert driver(store).latest() == latest


class UnconditionalStore(MemoryStore):
    """Looks before it writes, and promises nothing."""

    conditional = False


def test_one_driver_after_the_other_is_safe_without_conditional_writes() -> None:
    store = UnconditionalStore()
    old, new = owner(store), owner(store)
    assert new.commit_batch(0, []).number == 3
    with pytest.raises(NotOwner):
        old.commit_batch(0, [])


@pytest.mark.parametrize("when", ["before", "after", "late"])
def test_a_commit_in_doubt_is_neither_lost_nor_done_twice(when: str) -> None:
    store = FailingStore()
    manifests = owner(store)
    log = logged(0)
    store.fail_once("/manifest/", when)
    with pytest.raises(StoreUnavailable):
        manifests.commit_batch(0, [log])
    committed = manifests.commit_batch(0, [log])
    for late in store.late:
        with pytest.raises(Exception, match="already in"):
            late()
    assert committed.log == (log,)
    assert driver(store).latest() == committed
    assert manifests.commit_batch(1, []).number == 3


def test_a_recovery_in_doubt_can_be_repeated() -> None:
    store = FailingStore()
    store.fail_once("/manifest/", "after")
    manifests = driver(store)
    with pytest.raises(StoreUnavailable):
        manifests.recover(Manifest.first(TASKS))
    manifests.recover(Manifest.first(TASKS))
    assert manifests.commit_batch(0, []).number == 3


def test_a_damaged_newest_manifest_is_refused_and_no_older_one_taken(store: MemoryStore) -> None:
    manifests = owner(store)
    manifests.commit(lambda current: current)
    newest = keys(store)[-1]
    data = bytearray(store.get(newest))
    data[-5] ^= 1
    store.put(newest, data)
    with pytest.raises(DamagedObject):
        driver(store).latest()
    with pytest.raises(DamagedObject):
        driver(store).recover()


def test_a_batch_commit_whose_whole_manifest_is_gone_is_refused(store: MemoryStore) -> None:
    manifests = owner(store)
    whole = keys(store)[-1]
    manifests.commit_batch(0, [])
    store.delete([whole])
    with pytest.raises(ObjectMissing) as missing:
        driver(store).latest()
    assert missing.value.key == whole


def test_another_secret_is_refused(store: MemoryStore) -> None:
    owner(store)
    with pytest.raises(ForeignObject):
        Manifests(store, Secret.of("quite another secret"), "counts").recover()


def test_the_low_water_mark_is_the_newest_batch_that_all_states_include(store: MemoryStore) -> None:
    manifests = owner(store)
    logs = [logged(batch) for batch in range(4)]
    for log in logs:
        manifests.commit_batch(log.batch, [log])
    snapshot(store, manifests, TASKS[0], batch=3)
    assert manifests.commit(lambda current: current).low_water_mark == -1
    snapshot(store, manifests, TASKS[1], batch=1)
    latest = manifests.commit(lambda current: current)
    assert (latest.low_water_mark, latest.log) == (1, tuple(logs[2:]))


def test_a_unit_that_had_no_input_no_longer_holds_the_log_back(any_store: Store) -> None:
    manifests = owner(any_store)
    for batch in range(5):
        manifests.commit_batch(batch, [logged(batch)])
    ref = snapshot(any_store, manifests, TASKS[0], batch=3)
    latest = manifests.commit(lambda current: current.with_states([], unchanged={TASKS[1]: 4}))
    assert (latest.units[TASKS[1]], latest.units.through(TASKS[1])) == (None, 4)
    assert (latest.low_water_mark, [log.batch for log in latest.log]) == (3, [4])
    restarted = driver(any_store).recover()
    assert restarted.units == latest.units
    assert (restarted.units[TASKS[0]], restarted.units.through(TASKS[0])) == (ref, 3)


def test_a_state_saved_later_than_it_was_last_unchanged_takes_its_place(store: MemoryStore) -> None:
    manifests = owner(store)
    for batch in range(5):
        manifests.commit_batch(batch, [])
    manifests.commit(lambda current: current.with_states([], unchanged={TASKS[0]: 2}))
    ref = snapshot(store, manifests, TASKS[0], batch=3)
    latest = manifests.commit(lambda current: current.with_states([], unchanged={TASKS[0]: 4, TASKS[1]: 1}))
    assert (latest.units[TASKS[0]], latest.units.through(TASKS[0])) == (ref, 4)
    assert latest.low_water_mark == 1


def test_an_older_unchanged_batch_changes_nothing(store: MemoryStore) -> None:
    manifests = owner(store)
    for batch in range(3):
        manifests.commit_batch(batch, [])
    snapshot(store, manifests, TASKS[0], batch=2)
    known = manifests.commit(lambda current: current.with_states([], unchanged={TASKS[1]: 2}))
    for unit in TASKS:  # one was saved after batch 2, the other one is known to be unchanged since
        late = manifests.commit(lambda current, unit=unit: current.with_states([], unchanged={unit: 1}))  # type: ignore[misc]
        assert late.units == known.units


def test_a_state_older_than_what_is_known_is_not_committed(store: MemoryStore) -> None:
    manifests = owner(store)
    for batch in range(3):
        manifests.commit_batch(batch, [])
    manifests.commit(lambda current: current.with_states([], unchanged={TASKS[0]: 2}))
    with pytest.raises(InvalidStorageInput, match="back from batch 2 to batch 1"):
        snapshot(store, manifests, TASKS[0], batch=1)
    with pytest.raises(InvalidStorageInput, match="back from batch 2 to batch -1"):
        manifests.commit(lambda current: replace(current, units=UnitStates(dict(current.units))))


def test_no_unit_is_unchanged_as_of_a_batch_that_is_not_committed(store: MemoryStore) -> None:
    manifests = owner(store)
    with pytest.raises(InvalidStorageInput, match="Commit the batch before the state"):
        manifests.commit(lambda current: current.with_states([], unchanged={TASKS[0]: 0}))


def test_an_unknown_unit_cannot_be_unchanged(store: MemoryStore) -> None:
    with pytest.raises(InvalidStorageInput, match="task 9"):
        owner(store).commit(lambda current: current.with_states([], unchanged={UnitId.from_number(9): -1}))


def test_units_differ_if_they_include_different_batches() -> None:
    empty = dict.fromkeys(TASKS)
    assert UnitStates(empty) == empty
    assert UnitStates(empty) == UnitStates(empty, {TASKS[0]: -1})
    assert UnitStates(empty) != UnitStates(empty, {TASKS[0]: 0})


def test_the_time_of_a_batch_is_known_until_all_states_include_it(any_store: Store) -> None:
    manifests = owner(any_store)
    times = [BatchTime(0, 1_000), BatchTime(1, 2_000, None, 500), BatchTime(2, 3_000, 500, 1_500)]
    for time in times:
        manifests.commit_batch(time.batch, [logged(time.batch)], time=time)
    assert driver(any_store).latest() == manifests.commit_batch(2, [])
    latest = manifests.commit(lambda current: current.with_states([], unchanged=dict.fromkeys(TASKS, 0)))
    assert latest.times == tuple(times[1:])
    assert driver(any_store).recover().times == tuple(times[1:])


def test_the_time_of_a_batch_is_the_one_that_was_committed_first(store: MemoryStore) -> None:
    manifests = owner(store)
    manifests.commit_batch(0, [], complete=False, time=BatchTime(0, 1_000))
    manifests.commit_batch(0, [], complete=False, time=BatchTime(0, 9_000))
    restarted = driver(store)
    restarted.recover()
    assert restarted.commit_batch(0, [], round=1).times == (BatchTime(0, 1_000),)


def test_times_are_kept_when_batch_commits_are_folded(store: MemoryStore) -> None:
    manifests = owner(store)
    for batch in range(BATCHES_PER_WHOLE + 2):
        manifests.commit_batch(batch, [], time=BatchTime(batch, batch * 10))
    latest = driver(store).latest()
    assert latest is not None
    assert [time.timestamp_ms for time in latest.times] == [10 * batch for batch in range(BATCHES_PER_WHOLE + 2)]


@pytest.mark.parametrize(("batch", "round_"), [(1, 0), (0, 1)])
def test_the_time_of_a_batch_comes_with_its_first_round(store: MemoryStore, batch: int, round_: int) -> None:
    with pytest.raises(InvalidStorageInput, match="with round 0"):
        owner(store).commit_batch(batch, [], round=round_, time=BatchTime(0, 1_000))


def test_nothing_goes_back(store: MemoryStore) -> None:
    manifests = owner(store)
    for batch in range(3):
        manifests.commit_batch(batch, [])
    older = snapshot(store, manifests, TASKS[0], batch=1)
    for unit in TASKS:
        snapshot(store, manifests, unit, batch=2)
    latest = manifests.commit(lambda current: replace(current, epoch=5))
    empty = UnitStates({**latest.units, UnitId(0, 2): None})
    for change, name in [({"epoch": 4}, "epoch"), ({"last_batch": 1}, "last"), ({"units": empty}, "low_water_mark")]:
        with pytest.raises(InvalidStorageInput, match=name):
            manifests.commit(lambda current, change=change: replace(current, **change))  # type: ignore[misc]
    with pytest.raises(InvalidStorageInput, match="low_water_mark"):
        manifests.commit(lambda current: current.with_states([older]))
    assert driver(store).latest() == latest


def test_a_state_whose_lease_has_ended_is_not_committed(store: MemoryStore) -> None:
    manifests = owner(store)
    manifests.commit_batch(0, [])
    with manifests.leases.open("snapshot") as lease, StateManager(store, SECRET, "counts") as states:
        ref = states.save(TASKS[0], 1, batch=0, lease=lease)
    with pytest.raises(LeaseClosed):
        manifests.commit(lambda current: current.with_states([ref]))


def test_a_state_of_an_uncommitted_batch_is_not_committed(store: MemoryStore) -> None:
    manifests = owner(store)
    with pytest.raises(InvalidStorageInput, match="Commit the batch before the state"):
        snapshot(store, manifests, TASKS[0], batch=0)


def test_a_unit_has_its_own_state(store: MemoryStore) -> None:
    manifests = owner(store)
    manifests.commit_batch(0, [])
    ref = snapshot(store, manifests, TASKS[0], batch=0)
    with pytest.raises(InvalidStorageInput, match="each unit's own"):
        UnitStates({TASKS[1]: ref})


def test_units_can_be_added_and_removed(store: MemoryStore) -> None:
    manifests = owner(store)
    manifests.commit_batch(0, [])
    for unit in [*TASKS, UnitId(1, 0)]:
        snapshot(store, manifests, unit, batch=0)
    assert set(driver(store).recover().units) == {*TASKS, UnitId(1, 0)}
    fewer = owner(store).commit(
        lambda current: replace(current, units=UnitStates({unit: current.units[unit] for unit in TASKS}))
    )
    assert list(fewer.units) == TASKS


def test_time_source_and_published_results_outlive_the_log(any_store: Store) -> None:
    manifests = owner(any_store)
    time, source = BatchTime(0, 1_000, None, 500), SourceBatch(7, "digest")
    manifests.commit_batch(0, [logged(0)], time=time, source=source)
    manifests.commit_batch(1, [], time=BatchTime(1, 2_000, 500, 500), published=0)  # a tick: no batch of the source
    for unit in TASKS:
        snapshot(any_store, manifests, unit, batch=1)
    manifests.commit(lambda current: replace(current, published=1))
    recovered = driver(any_store).recover()
    assert (recovered.log, recovered.times) == ((), ())
    assert recovered.latest_time == BatchTime(1, 2_000, 500, 500)
    assert (recovered.source, recovered.published) == (source, 1)


@pytest.mark.parametrize(
    "time",
    [BatchTime(1, 999, 500, 500), BatchTime(1, 1_000, 499, 500), BatchTime(1, 1_000, 500, 499), BatchTime(1, 1_000)],
)
def test_neither_clock_nor_watermark_goes_back(store: MemoryStore, time: BatchTime) -> None:
    manifests = owner(store)
    manifests.commit_batch(0, [], time=BatchTime(0, 1_000, None, 500))
    with pytest.raises(InvalidStorageInput, match="would go back"):
        manifests.commit_batch(1, [], time=time)
    manifests.commit_batch(1, [], time=BatchTime(1, 1_000, 500, 500))


def test_published_results_do_not_go_back(store: MemoryStore) -> None:
    manifests = owner(store)
    manifests.commit_batch(0, [])
    manifests.commit_batch(1, [], published=0)
    assert manifests.commit_batch(2, [], published=-1).published == 0  # a late answer says nothing new
    with pytest.raises(InvalidStorageInput, match="published"):
        manifests.commit(lambda current: replace(current, published=-1))


def test_a_manifest_of_version_0_1_has_the_time_of_its_log() -> None:
    time = BatchTime(0, 1_000, None, 500)
    document = Manifest.first(TASKS).with_batch(0, 0, True, [], time).to_json()
    for name in ("latest_time", "source", "published"):
        del document[name]
    manifest = Manifest.from_json(document)
    assert (manifest.latest_time, manifest.source, manifest.published) == (time, None, -1)


def test_later_rounds_leave_the_clock_and_the_source_of_their_batch_as_they_are(store: MemoryStore) -> None:
    manifests = owner(store)
    time, source = BatchTime(0, 1_000, None, 500), SourceBatch(7, "digest")
    manifests.commit_batch(0, [], complete=False, time=time, source=source)
    committed = manifests.commit_batch(0, [], round=1)
    assert (committed.latest_time, committed.source) == (time, source)
    recovered = driver(store).recover()
    assert (recovered.latest_time, recovered.source) == (time, source)
