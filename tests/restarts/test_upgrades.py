"""A job continues with a newer version of its operator: stored states are upgraded once, whatever happens between."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from elastic.core import events
from elastic.core.view import JobView
from elastic.errors import IncompatibleRestart, MissingUpgrade, StateNewer, UpgradeFailed
from elastic.job.job import Job
from elastic.local.run import local_run
from elastic.operators import CountByKey, Operator, Stage, StatelessOperator, partial
from elastic.routing import KeyTargets, hash_key
from storage import Secret
from storage.state import Manifests, StateManager
from storage.stores.file.store import FileStore
from tests.restarts.versions import Columns1, Columns2, FailingSpending, Spending1, Spending2, Spending3

SECRET = Secret.of("a secret of these tests")
SCHEMA = pa.schema([("customer", pa.string()), ("amount", pa.int64())])
BATCHES = [
    pa.table({"customer": ["ada", "fay", "ada"], "amount": [1, 2, 3]}, schema=SCHEMA),
    pa.table({"customer": ["fay", "cy"], "amount": [4, 5]}, schema=SCHEMA),
    pa.table({"customer": ["ada", "cy", "dan"], "amount": [6, 7, 8]}, schema=SCHEMA),
]
NAMES = ("ada", "fay", "cy", "dan")


def totals(batches: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for table in BATCHES[:batches]:
        for row in table.to_pylist():
            found[row["customer"]] += row["amount"]
    return found


def start(folder: Path, operator: Operator | Stage, batches: int, **options: Any) -> Job:
    job = local_run(
        BATCHES[:batches],
        schema=SCHEMA,
        key="customer",
        operator=operator,
        name="spending",
        store=folder.as_uri(),
        secret=SECRET,
        tasks=16,
        settings={"heartbeat_seconds": 0.1, **options},
    )
    job.process_all_available()
    return job


def totals_of(job: Job) -> dict[str, int]:
    found = {name: job.state(name) for name in NAMES}
    return {name: value["total"] if isinstance(value, dict) else value for name, value in found.items() if value}


def versions_in(folder: Path) -> Counter[str | None]:
    """The versions of the states that the newest manifest names."""
    store = FileStore(folder)
    manifest = Manifests(store, SECRET, "spending").latest()
    assert manifest is not None
    with StateManager(store, SECRET, "spending") as manager:
        loaded = manager.load_many(ref for ref in manifest.units.values() if ref is not None)
    store.close()
    return Counter(one.meta.get("version") for one in loaded.values())


@pytest.mark.parametrize(("old", "new"), [(Spending1, Spending2), (Columns1, Columns2)])
@pytest.mark.parametrize("drain", [True, False])
def test_a_new_version_reads_the_state_of_the_old_one(
    tmp_path: Path, old: type[Operator], new: type[Operator], drain: bool
) -> None:
    """Without `drain` the new version repeats the batches since the snapshot of the old one."""
    job = start(tmp_path, old(), 1)
    job.snapshot()
    job.stop(drain=drain)
    assert set(versions_in(tmp_path)) == {"1"}
    with start(tmp_path, new(), 3) as job:
        assert totals_of(job) == totals(3)


def test_the_next_snapshot_has_the_new_version_also_of_units_without_input(tmp_path: Path) -> None:
    start(tmp_path, Spending1(), 2).stop()
    before = versions_in(tmp_path)
    assert set(before) == {"1"}
    start(tmp_path, Spending2(), 3).stop()
    after = versions_in(tmp_path)
    assert set(after) == {"2"}
    assert after.total() >= before.total()


def test_every_value_is_upgraded_once_although_the_job_restarts_in_between(tmp_path: Path) -> None:
    start(tmp_path, Spending1(), 1).stop()
    start(tmp_path, Spending2(), 1).stop(drain=False)  # saves nothing
    assert set(versions_in(tmp_path)) == {"1"}
    start(tmp_path, Spending2(), 2).stop()
    with start(tmp_path, Spending2(), 3) as job:
        assert job.state("ada") == {"total": 10, "from": ["1"]}
        assert job.state("dan") == {"total": 8, "from": []}


def test_a_version_may_be_skipped_and_states_of_several_versions_are_upgraded_each_from_its_own(tmp_path: Path) -> None:
    start(tmp_path, Spending1(), 1).stop()
    start(tmp_path, Spending2(), 1).stop(drain=False)
    with start(tmp_path, Spending3(), 1) as job:
        assert job.state("ada") == {"total": 4, "from": ["1"]}
    start(tmp_path, Spending3(), 2).stop()
    with start(tmp_path, Spending3(), 3) as job:
        assert totals_of(job) == totals(3)
        assert job.state("ada")["from"] == ["1"]


def test_standbys_and_migrations_see_one_version(tmp_path: Path) -> None:
    start(tmp_path, Spending1(), 2).stop()
    with start(tmp_path, Spending2(), 2, standbys=1) as job:
        job.scale(3).wait(30)
        job.scale(2, mode="warm").wait(30)
        assert totals_of(job) == totals(2)
        assert job.state("fay") == {"total": 6, "from": ["1"]}


def rekey(job: Job, tasks: dict[str, int | None]) -> None:
    targets = KeyTargets.from_mapping(0, {hash_key(key): task for key, task in tasks.items()})
    job._driver.post(events.RekeyRequested("move", (targets,), (1.0,)))

    def is_over(view: JobView) -> bool:
        return view.rekeying is not None and view.rekeying.id == "move" and view.rekeying.is_over

    job._driver.views.wait_for(is_over, 30.0, "the keys to move")


@pytest.mark.parametrize(("old", "new"), [(Spending1, Spending2), (Columns1, Columns2)])
def test_keys_that_moved_before_the_upgrade_are_upgraded_when_the_move_is_repeated(
    tmp_path: Path, old: type[Operator], new: type[Operator]
) -> None:
    job = start(tmp_path, Stage(old(), grouping="table"), 2)
    rekey(job, {"ada": 3, "fay": 2, "cy": 0})
    job.stop(drain=False)  # the parts are in the log only, as the old version wrote them
    with start(tmp_path, Stage(new(), grouping="table"), 3) as job:
        assert totals_of(job) == totals(3)


class NoUpgrade(Spending1):
    """Another version without a method for the old state."""

    version = "2"


def test_another_version_without_a_method_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    start(tmp_path, Spending1(), 1).stop()
    with pytest.raises(MissingUpgrade, match=r"NoUpgrade a method upgrade\(old_version, value\)") as caught:
        start(tmp_path, NoUpgrade(), 1)
    assert isinstance(caught.value, IncompatibleRestart)
    assert (caught.value.stage, caught.value.before, caught.value.now) == ("spending", "1", "2")
    with start(tmp_path, Spending1(), 2) as job:
        assert totals_of(job) == totals(2)


def test_old_code_is_refused_after_an_upgrade(tmp_path: Path) -> None:
    start(tmp_path, Spending1(), 1).stop()
    start(tmp_path, Spending2(), 2).stop()
    with pytest.raises(StateNewer, match="version '2' of Spending1 has taken over"):
        start(tmp_path, Spending1(), 2)
    start(tmp_path, NoUpgrade(), 2).stop()  # the version is what counts, not the class
    start(tmp_path, Spending3(), 2).stop()
    with pytest.raises(StateNewer):
        start(tmp_path, Spending2(), 2)


def test_an_upgrade_that_raises_ends_the_job_and_can_be_corrected(tmp_path: Path) -> None:
    start(tmp_path, Spending1(), 1).stop()
    with pytest.raises(UpgradeFailed, match="too much") as caught:
        start(tmp_path, FailingSpending(), 2)
    error = caught.value
    assert (error.operator, error.before, error.now) == ("spending", "1", "2")
    assert error.key in ("'ada'", "'fay'")
    assert re.search(r"key '\w+' in task \d+ from version '1' to '2'", str(error))
    with start(tmp_path, Spending2(), 2) as job:
        assert totals_of(job) == totals(2)


class Renamed(StatelessOperator):
    """Has no state, so any version may follow."""

    name = "spending"
    output_schema = "customer string, amount long"

    def __init__(self, version: str) -> None:
        self.version = version  # type: ignore[misc]

    def handle_batch(self, rows: pa.Table, *_: Any) -> Any:
        return rows


def test_an_operator_without_state_needs_no_method(tmp_path: Path) -> None:
    start(tmp_path, Renamed("1"), 1).stop()
    start(tmp_path, Renamed("2"), 2).stop()


class Counts2(CountByKey):
    """Counts as before, of another version."""

    version = "2"
    name = "CountByKey"

    def upgrade(self, old_version: str, value: Any) -> Any:
        assert old_version == "1"
        return value


def test_partials_that_are_held_are_those_of_the_new_version(tmp_path: Path) -> None:
    def run(operator: Operator, batches: int) -> Job:
        return start(tmp_path, partial(operator, every="1 hour"), batches)  # type: ignore[arg-type]

    run(CountByKey(), 1).stop()
    with run(Counts2(), 3) as job:
        assert job.state("ada", stage="CountByKey", fresh=True) == 3
