"""Commands that a node does not take: the incarnation is replaced, and the commands after it are not sent."""

import threading
from typing import Any

import pytest

from elastic.errors import NodeInUse
from elastic.runtime.controller.outbox import Outbox
from elastic.runtime.wire import Endpoint, Peer, Refused, wire_token
from storage import Secret
from tests.elastic.runtime.local_job import start_local_job

TOKEN = wire_token(Secret.of("a secret of this test"), "life 1")


@pytest.mark.parametrize("error", [Refused("not that one"), KeyError("a mistake in the handler")])
def test_a_command_that_a_node_does_not_take_is_reported_and_none_is_sent_after_it(error: Exception) -> None:
    heard: list[str] = []

    def hear(document: dict[str, Any]) -> str:
        heard.append(document["kind"])
        if document["kind"] == "apply":
            raise error
        return "heard"

    endpoint = Endpoint("127.0.0.1", TOKEN, {"command": hear})
    refused, told = threading.Event(), []

    def on_refused(node: str, why: str) -> None:
        told.append((node, why))
        refused.set()

    outbox = Outbox("node-1", Peer(endpoint.address, TOKEN), on_refused)
    for kind in ("adopt", "apply", "snapshot"):
        outbox.send(kind, {})
    assert refused.wait(10)
    outbox.close()
    endpoint.close()
    [(node, why)] = told
    assert node == "node-1"
    assert "did not take a command" in why
    assert heard == ["adopt", "apply"]


def test_a_node_whose_command_handler_crashes_is_replaced_and_nothing_is_lost() -> None:
    local = start_local_job(nodes=2)
    try:
        local.send(1, 2, 3, 4)
        local.job.process_all_available()
        broken = next(iter(local.launcher.nodes))
        local.launcher.nodes[broken]._endpoint._server._actions["command"] = lambda _: 1 // 0  # type: ignore[index]
        local.send(1, 2, 3, 4)
        local.job.process_all_available()
        assert [local.job.state(key) for key in (1, 2, 3, 4)] == [2, 2, 2, 2]
        assert local.job.status().losses == 1
        assert "did not take a command" in str(local.job.story())
    finally:
        local.close()


def test_a_node_that_owns_tasks_is_not_removed_and_whoever_asks_is_told() -> None:
    local = start_local_job(nodes=2, tasks=4)
    try:
        with pytest.raises(NodeInUse, match="owns tasks 0, 1") as refused:
            local.controller.remove_node("node-1")
        assert refused.value.tasks == (0, 1)
        assert sorted(node.name for node in local.job.status().nodes) == ["node-1", "node-2"]
        local.controller.remove_node("node-9")  # there is none
    finally:
        local.close()
