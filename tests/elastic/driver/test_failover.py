"""Standbys in processes that are killed: units serve again without a restart, and every row is counted once."""

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from elastic.errors import InvalidRequest, StateUnavailable
from elastic.operators import CountByKey
from elastic.wire import PeerUnavailable
from tests.elastic.driver.local_job import LocalJob, run_processes, start_local_job, until

KEYS = [f"key-{number}" for number in range(20)]


def follows_everything(local: LocalJob, nodes: int) -> bool:
    """Whether all nodes serve, and every unit has a standby that could take over."""
    view = local.driver.view
    return len(view.serving) == nodes and sum(map(len, view.standbys.values())) == 4


def kill(local: LocalJob, node: str) -> None:
    view = local.driver.view.node(node)
    assert view is not None
    os.kill(view.pid, signal.SIGKILL)


def test_killed_nodes_lose_no_row_and_none_is_counted_twice(tmp_path: Path) -> None:
    sent: Counter[str] = Counter()
    with run_processes(CountByKey(), tmp_path, nodes=3, standbys=1) as local:
        for round_ in range(3):
            for _ in range(4):
                local.commit([(key, 1) for key in KEYS])
                sent.update(KEYS)
            local.driver.wait_until_published(local.driver.view.newest_batch, 30)
            until(lambda: follows_everything(local, 3), "standbys")
            owner = local.driver.view.route.assignment.owners[round_]
            kill(local, owner)
            local.commit([(key, 1) for key in KEYS])
            sent.update(KEYS)
            until(lambda done=round_ + 1: len(local.status().recoveries) == done, "a recovery")  # type: ignore[misc]
            recovery = local.status().recoveries[-1]
            assert recovery["node"] == owner
            assert local.driver.view.route.assignment.owners[round_] != owner
        local.driver.wait_until_published(local.driver.view.newest_batch, 30)
        assert {key: local.job.state(key) for key in KEYS} == dict(sent)


def test_a_standby_answers_while_its_owner_is_silent_if_the_answer_may_be_stale(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = start_local_job(nodes=2, standbys=1, query_seconds=0.0)
    try:
        local.send(1, 2, 3, 4)
        local.job.process_all_available()
        until(lambda: follows_everything(local, 2), "standbys")
        until(
            lambda: {(len(node.standbys), node.lag) for node in local.status().nodes} == {(2, 0)},
            "the standbys to take the batch",
        )
        call, lost = local.driver.links.call, "node-1"

        def answer(node: str, action: str, document: Any) -> Any:
            if node == lost:
                raise PeerUnavailable(node, "it was killed")
            return call(node, action, document)

        monkeypatch.setattr(local.driver.links, "call", answer)
        assert [local.job.state(key, stale=True) for key in (1, 2, 3, 4)] == [1, 1, 1, 1]
        with pytest.raises(StateUnavailable):
            [local.job.state(key) for key in (1, 2, 3, 4)]
        with pytest.raises(InvalidRequest, match="fresh and stale"):
            local.job.state(1, fresh=True, stale=True)
    finally:
        local.close()
