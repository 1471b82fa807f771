"""The HTTP API over a real socket, on a job that counts on a real Spark meanwhile."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

import elastic
import elastic.api
from elastic.api.server import Server
from migration import Plan, ownership_from_dict
from tests.spark.jobs import assert_exact, start_slow_to_move, until

pytestmark = pytest.mark.spark

_PATIENCE_SECONDS = 60.0
OVER = ("done", "cancelled", "failed")


class Client(httpx.Client):
    """Paths are under /api/v1; `change` brings the token along."""

    def __init__(self, server: Server) -> None:
        super().__init__(base_url=f"{server.url}/api/v1/", timeout=_PATIENCE_SECONDS, trust_env=False)
        self._bearer = {"Authorization": f"Bearer {server.token}"}

    def read(self, path: str, **query: Any) -> Any:
        answer = self.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def change(self, path: str, **body: Any) -> httpx.Response:
        return self.post(path, json=body, headers=self._bearer)

    def begin(self, path: str, **body: Any) -> str:
        """Ask for a migration that nothing stands in the way of; where it can be followed."""
        answer = self.change(path, relax=True, **body)
        assert answer.status_code == 202, answer.text
        return answer.headers["location"].removeprefix("/api/v1/")

    def until(self, migration: str, *phases: str) -> Any:
        """The migration in one of these phases."""
        return until(lambda: found if (found := self.read(migration))["progress"]["phase"] in phases else None)


@pytest.fixture(scope="module")
def job(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[elastic.SparkJob]:
    store: Path = tmp_path_factory.mktemp("api") / "store"
    with start_slow_to_move(spark, store) as job:
        yield job


@pytest.fixture(scope="module")
def client(job: elastic.SparkJob) -> Iterator[Client]:
    with elastic.api.serve(job) as server, Client(server) as client:
        yield client


@contextmanager
def snapshots(client: Client) -> Iterator[Iterator[Any]]:
    """Those that the server sends by itself, one after the other, as the page hears them."""
    with client.stream("GET", "jobs/counts/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        read = (json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data: "))
        assert next(read).keys() == {"responses"}
        yield read


def other_number(job: elastic.SparkJob) -> int:
    """Of nodes: two or four, whichever it has not."""
    return 2 if len(job.assignment().nodes) > 2 else 4


def slow_change(job: elastic.SparkJob) -> dict[str, Any]:
    """One that takes several steps, whatever the work that was measured: an equal split moves half of the tasks."""
    return {"nodes": other_number(job), "strategy": "even", "tasks_per_node": 1}


def all_have_units(status: dict[str, Any]) -> bool:
    return all(node["units"] for node in status["nodes"])


def test_a_job_has_a_status_and_plans(client: Client, job: elastic.SparkJob) -> None:
    [summary] = client.read("jobs")
    assert (summary["name"], summary["state"], summary["tasks"]) == ("counts", "running", 16)
    assert summary["operators"] == [{"name": "CountSlowToMove", "key": ["key"], "grouping": "hash"}]
    rows = client.read("jobs/counts/status")["rows"]
    until(lambda: client.read("jobs/counts/status")["rows"] > rows)
    # Rows are counted when their batch is committed, and units are those of the last heartbeats.
    status = until(lambda: found if all_have_units(found := client.read("jobs/counts/status")) else None)
    assert {unit["task"] for node in status["nodes"] for unit in node["units"]} == set(range(16))
    assert all(node["serving"] and node["pid"] for node in status["nodes"])
    assert ownership_from_dict(client.read("jobs/counts/assignment")) == job.assignment()
    until(lambda: client.read("jobs/counts/load", seconds=10)["utilisation"].keys() == set(job.assignment().nodes))
    known = len(job.journal())
    candidates = client.read("jobs/counts/plan", nodes=5, relax=True)["plans"]
    plans = {one["strategy"]: Plan.from_dict(one["plan"]) for one in candidates}
    assert plans.keys() == {"ssm", "even", "consistent-hash"}
    assert all(len(plan.target.nodes) == 5 for plan in plans.values())
    assert len(job.journal()) == known


def test_changes_need_the_token_and_valid_arguments(client: Client, job: elastic.SparkJob) -> None:
    before = job.assignment()
    for path in ("scale", "rebalance", "migrations/1/pause"):
        assert client.post(f"jobs/counts/{path}", json={"nodes": 3}).status_code == 401
    impossible: list[tuple[dict[str, Any], str]] = [
        ({"nodes": 17}, "at most 16"),
        ({"remove": ["node-99"]}, "node-99"),
        ({"nodes": 3, "strategy": "mtm", "value": "foreseen"}, "foreseen"),
    ]
    for body, why in impossible:
        refused = client.change("jobs/counts/scale", **body)
        assert refused.status_code == 422
        assert why in refused.json()["detail"]
    assert job.assignment() == before


def test_of_requests_at_the_same_moment_one_wins_and_the_others_hear_what_to_do(
    client: Client, job: elastic.SparkJob
) -> None:
    nodes, clients = other_number(job), 8
    ready = threading.Barrier(clients)

    def ask(_: int) -> httpx.Response:
        ready.wait(_PATIENCE_SECONDS)
        return client.change("jobs/counts/scale", nodes=nodes, relax=True)

    with ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(ask, range(clients)))
    assert sorted(answer.status_code for answer in answers) == [202] + [409] * (clients - 1)
    for lost in (answer.json() for answer in answers if answer.status_code == 409):
        assert lost["type"] == "urn:elastic:MigrationInProgress"
        assert "Wait for it" in lost["detail"]
    [won] = [answer for answer in answers if answer.status_code == 202]
    ended = client.until(won.headers["location"].removeprefix("/api/v1/"), *OVER)
    assert ended["progress"]["phase"] == "done"
    assert ended["progress"]["tasks_done"] == len(ended["moves"]) > 0
    assert len(job.assignment().nodes) == nodes
    newest = client.read("jobs/counts/journal", limit=2)["records"]
    assert [record["kind"] for record in newest] == ["ended", "began"]
    assert newest[0]["outcome"] == "done"


def test_listeners_see_every_task_that_moves_at_its_old_node_on_its_way_and_at_its_new_node(
    client: Client, job: elastic.SparkJob
) -> None:
    before = job.assignment().owners
    with snapshots(client) as heard:
        assert any(snapshot["owners"] == list(before) for snapshot in heard)  # the first may be half a second old
        began = client.begin("jobs/counts/scale", **slow_change(job))
        number = int(began.rpartition("/")[2])
        seen = []
        for snapshot in heard:
            if snapshot["migration"] is not None and snapshot["migration"]["number"] == number:
                seen.append(snapshot)
                if snapshot["migration"]["is_over"]:
                    break
    after = job.assignment().owners
    assert seen[-1]["owners"] == list(after) != list(before)
    moves = {move["task"]: move for move in seen[-1]["migration"]["moves"]}
    assert {task for task in range(16) if before[task] != after[task]} == moves.keys()
    for snapshot in seen:
        for task, owner in enumerate(snapshot["owners"]):
            assert owner in (before[task], after[task])
    states = [{move["state"] for move in snapshot["migration"]["moves"]} for snapshot in seen]
    assert any("moving" in found for found in states)
    assert states[-1] == {"moved"}
    assert len({snapshot["id"] for snapshot in seen}) == len(seen)
    assert seen[-1]["rows"] > seen[0]["rows"]
    assert "released tasks" in "".join(client.read(f"{began}/story")["lines"])


def test_a_migration_is_paused_resumed_and_cancelled_and_then_the_rest_is_balanced(
    client: Client, job: elastic.SparkJob
) -> None:
    began = client.begin("jobs/counts/scale", **slow_change(job))
    assert client.change(f"{began}/pause").json()["is_paused"]
    half = client.until(began, "paused", *OVER)
    assert half["progress"]["phase"] == "paused"
    assert "moving" not in {move["state"] for move in half["moves"]}
    rows = client.read("jobs/counts/status")["rows"]
    until(lambda: client.read("jobs/counts/status")["rows"] > rows)  # the stream does not pause
    assert client.change("jobs/counts/rebalance").status_code == 409
    until(lambda: client.read("jobs/counts/snapshot")["migration"]["is_paused"])
    assert scraped(client)["elastic_migration_running"] == {("counts",): 1.0}

    assert client.change(f"{began}/resume").status_code == 200
    until(lambda: client.read(began)["progress"]["tasks_done"] > half["progress"]["tasks_done"])
    assert client.change(f"{began}/cancel").status_code == 200
    ended = client.until(began, *OVER)
    assert ended["progress"]["phase"] == "cancelled"
    assert {move["state"] for move in ended["moves"]} == {"moved", "skipped"}
    assert client.change(f"{began}/resume").json()["type"] == "urn:elastic:MigrationOver"

    working = set(job.assignment().owners)
    assert set(job.assignment().nodes) == working
    balanced = client.until(client.begin("jobs/counts/rebalance"), *OVER)
    assert balanced["progress"]["phase"] == "done"
    assert set(job.assignment().owners) == working
    assert {node.name for node in job.status().nodes if node.serving} == set(job.assignment().owners)


def scraped(client: Client) -> dict[str, dict[tuple[str, ...], float]]:
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(client.get("metrics").text)
    }


def test_metrics_and_health_tell_of_the_job_on_spark(client: Client, job: elastic.SparkJob) -> None:
    assert client.read("health") == {"status": "ok", "jobs": {"counts": "running"}, "problems": {}}
    rows = scraped(client)["elastic_rows"]["counts",]
    found = until(lambda: now if (now := scraped(client))["elastic_rows"]["counts",] > rows else None)
    owned = {("counts", node): len(job.assignment().tasks_of(node)) for node in job.assignment().nodes}
    assert found["elastic_node_tasks"] == owned
    assert set(found["elastic_node_up"].values()) == {1.0}
    assert found["elastic_node_losses"] == {("counts",): 0.0}
    assert min(found["elastic_node_state_bytes"].values()) > 0
    until(lambda: scraped(client)["elastic_trigger_seconds"])  # reported by Spark


def test_after_all_that_every_row_was_counted_once_and_a_job_that_has_ended_is_told_of(
    client: Client, job: elastic.SparkJob
) -> None:
    owned = client.read("jobs/counts/assignment")
    job.stop()
    assert_exact(job)
    assert {record["kind"] for record in client.read("jobs/counts/journal")["records"]} == {"began", "ended"}
    status = client.read("jobs/counts/status")
    assert (status["state"], status["published_batch"]) == ("stopped", status["last_batch"])
    assert client.read("jobs")[0]["state"] == "stopped"
    assert client.read("jobs/counts/assignment") == owned
    snapshot = until(lambda: now if (now := client.read("jobs/counts/snapshot"))["state"] == "stopped" else None)
    assert snapshot["last_batch"] == status["last_batch"]
    assert client.read("health")["jobs"] == {"counts": "stopped"}
    assert scraped(client)["elastic_job_up"] == {("counts",): 0.0}
    for change in ("scale", "rebalance"):
        refused = client.change(f"jobs/counts/{change}", **({"nodes": 3} if change == "scale" else {}))
        assert refused.status_code == 409
        assert "Restart it" in refused.json()["detail"]
