"""Protected keys on whole jobs: only their units have standbys, and a lost node interrupts them for no restart."""

import os
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from elastic.control.key_request import KeyRequest
from elastic.errors import InvalidJob, InvalidProtectedKeys, InvalidRequest, StateUnavailable
from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from elastic.operators import CountByKey, Stage, stateless
from elastic.operators.protected_keys import MOST_PROTECTED_KEYS
from elastic.routing import TableGrouping, hash_key, to_tasks
from elastic.wire import PeerUnavailable
from storage import Secret
from storage.state import UnitId
from tests.elastic.driver.local_job import LocalJob, run_processes, until

KEYS = [f"key-{number}" for number in range(20)]
PROTECTED = ["key-3", "key-7", "key-11"]
SECRET = Secret.of("a secret of these tests")


def stage_of(*protected: str) -> Stage:
    return Stage(CountByKey(), "key", grouping="table", standbys=0, protected_keys=protected)


def followed(job: Any) -> set[UnitId]:
    """The units that some node follows and could serve now."""
    return {unit for units in job._driver.view.standbys.values() for unit in units}


def unit_of(job: Any, key: str) -> UnitId:
    unit: UnitId = job._driver.view.routing.groupings.unit_of(hash_key(key), 0)
    return unit


def send(local: LocalJob, sent: Counter[str]) -> None:
    local.commit([(key, 1) for key in KEYS])
    sent.update(KEYS)


def test_protected_keys_are_guests_from_the_first_batch_on_and_only_guests_have_standbys(tmp_path: Path) -> None:
    sent: Counter[str] = Counter()
    with run_processes(stage_of(*PROTECTED), tmp_path, nodes=3, snapshot_seconds=1.0) as local:  # type: ignore[arg-type]
        send(local, sent)
        for key in KEYS:
            assert unit_of(local.job, key).guests == (key in PROTECTED)
        until(lambda: len(followed(local.job)) == 4, "standbys of guests")
        assert all(unit.guests for unit in followed(local.job))
        for lives in range(2):
            routing = local.driver.view.routing
            lost = routing.assignment.owners[unit_of(local.job, PROTECTED[lives]).task]
            for task, owner in enumerate(routing.assignment.owners):
                assert owner not in routing.standbys[task]
            node = local.driver.view.node(lost)
            assert node is not None
            os.kill(node.pid, signal.SIGKILL)
            send(local, sent)
            until(lambda done=lives: len(local.status().recoveries) > done, "a recovery")  # type: ignore[misc]
            assert lost not in local.driver.view.route.assignment.owners
            until(lambda: len(local.driver.view.serving) == 3 and len(followed(local.job)) == 4, "standbys again")
        local.driver.wait_until_published(local.driver.view.newest_batch, 30)
        assert {key: local.job.state(key) for key in KEYS} == dict(sent)


def test_a_protected_key_answers_stale_while_its_owner_is_silent_and_another_key_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_processes(stage_of(*PROTECTED), tmp_path, nodes=3, query_seconds=0.0) as local:  # type: ignore[arg-type]
        send(local, Counter())
        local.driver.wait_until_published(0, 30)
        until(lambda: len(followed(local.job)) == 4, "standbys of guests")
        call, lost = local.driver.links.call, local.driver.view.route.owners(unit_of(local.job, "key-3"))[0]

        def answer(node: str, action: str, document: Any) -> Any:
            if node == lost:
                raise PeerUnavailable(node, "it was killed")
            return call(node, action, document)

        monkeypatch.setattr(local.driver.links, "call", answer)
        until(lambda: local.job.state("key-3", stale=True) == 1, "the standby to take the batch")
        with pytest.raises(StateUnavailable):
            local.job.state("key-3")
        other = next(key for key in KEYS if local.driver.view.route.owners(unit_of(local.job, key))[0] == lost)
        assert other not in PROTECTED
        with pytest.raises(StateUnavailable):
            local.job.state(other, stale=True)


def test_a_restart_with_other_protected_keys_moves_these_with_its_first_batch() -> None:
    store, batch = "memory:protected-restart", pa.table({"word": KEYS})
    rules: list[Any] = ["hash", [], PROTECTED, ["key-7", "key-1"], []]
    for life, rule in enumerate(rules):
        source = TableSource(network := LocalNetwork(), [batch] * (life + 1))
        source.ingested = life
        grouping = "hash" if rule == "hash" else "table"
        protected = [] if rule == "hash" else rule
        stage = Stage(CountByKey(), "word", grouping=grouping, protected_keys=protected)
        job = local_run(
            source, key="word", operator=stage, name="rules", store=store, nodes=2, secret=SECRET, network=network
        )
        with job:
            job.process_all_available()
            until(lambda job=job: not job._driver.view.rekeying_is_due, "keys to move")  # type: ignore[misc]
            job._driver.wait_until_published(job._driver.view.newest_batch, 30)
            assert {key: job.state(key) for key in KEYS} == dict.fromkeys(KEYS, life + 1)
            assert {key for key in KEYS if unit_of(job, key).guests} == set(protected)


def refuse(keys: Any, grouping: str = "table", key: Any = "key", operator: Any = None) -> InvalidProtectedKeys:
    rows = pa.table({"key": pa.array([1], pa.int32()), "name": ["a"]})

    def start() -> None:
        stage = Stage(operator or CountByKey(), key, "counts", grouping=grouping, protected_keys=keys)
        local_run([rows], key="key", operator=stage, secret=SECRET)

    with pytest.raises(InvalidProtectedKeys) as caught:
        start()
    assert "'counts'" in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("alice", "is one value"),
        (7, "is one value"),
        (["seven"], "'seven' does not have the type"),
        ([7.5], "7.5 does not have the type"),
        ([2**40], "does not have the type"),
        ([7, None], "None is null"),
        ([(7, 8)], r"\(7, 8\) does not have the type"),
        ([[7]], r"\[7\] does not have the type"),
        ([float("nan")], "nan does not have the type"),
    ],
)
def test_what_no_row_can_have_as_its_key_is_refused_before_anything_starts(keys: Any, why: str) -> None:
    assert re.search(why, str(refuse(keys)))


def test_stages_without_a_table_or_without_state_have_no_protected_keys() -> None:
    assert "grouped by 'hash'" in str(refuse([7], grouping="hash"))
    emit = stateless(lambda rows: rows, "key int, name string")
    assert "has no state" in str(refuse([7], operator=emit))
    assert "3,001 keys are more than" in str(refuse(range(MOST_PROTECTED_KEYS + 1)))


@pytest.mark.parametrize("standbys", [-1, 1.5, "one"])
def test_a_number_of_standbys_is_0_or_more(standbys: Any) -> None:
    with pytest.raises(
        InvalidJob, match=r"standbys=.* is invalid\. Give the number of copies of each unit, 0 or more\."
    ):
        Stage(CountByKey(), "key", standbys=standbys)


def test_a_key_of_several_columns_is_a_tuple() -> None:
    assert "is null" in str(refuse([(7, None)], key=("key", "name")))
    assert "does not have the type" in str(refuse([7], key=("key", "name")))
    rows = pa.table({"key": pa.array([1, 2], pa.int32()), "name": ["a", "b"]})
    stage = Stage(CountByKey(), ("key", "name"), grouping="table", protected_keys=[(2, "b"), (2, "b")])
    with local_run([rows], key="key", operator=stage, secret=SECRET) as job:
        job.process_all_available()
        [table] = job.key_tables()
        assert table.entries == 1
        assert job.state((2, "b")) == 1
        [grouping] = job.routing().groupings.by_stage
        assert isinstance(grouping, TableGrouping)
        assert table.guests == {int(to_tasks(grouping.table.hashes, 8)[0]): 1}


def test_a_rebalance_needs_more_entries_than_there_are_protected_keys() -> None:
    class Measured:
        protected = 3

    with pytest.raises(InvalidRequest, match="Give at least 4"):
        KeyRequest(most_entries=3).plan(Measured())  # type: ignore[arg-type]
