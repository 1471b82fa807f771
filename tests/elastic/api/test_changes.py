"""Changes need the token; one migration runs at a time; an invalid request starts nothing."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from elastic.control import NodeStep
from tests.elastic.api.conftest import SECRET, Client
from tests.elastic.api.paper_job import PaperJob

CHANGES = [
    "jobs/words/scale",
    "jobs/words/rebalance",
    "jobs/words/split",
    "jobs/words/migrations/1/pause",
    "jobs/words/migrations/1/resume",
    "jobs/words/migrations/1/cancel",
]


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"timed out after {seconds:g} s"
        time.sleep(0.005)


def read_move_states(client: Client, number: int) -> set[str]:
    return {move["state"] for move in client.get(f"jobs/words/migrations/{number}").json()["moves"]}


def read_phase(client: Client, number: int) -> str:
    return str(client.get(f"jobs/words/migrations/{number}").json()["progress"]["phase"])


def wait_for_migration(job: PaperJob) -> None:
    assert job.migration is not None
    assert job.migration.wait(10)


def test_a_job_is_scaled_and_its_migration_can_be_followed(client: Client, job: PaperJob) -> None:
    answer = client.change("jobs/words/scale", nodes=6, relax=True, mode="live")
    assert answer.status_code == 202
    wait_for_migration(job)
    found = client.get(answer.headers["location"]).json()
    assert (found["number"], found["mode"], found["is_over"], found["progress"]["phase"]) == (1, "live", True, "done")
    assert (found["nodes_before"], found["nodes_after"]) == (4, 6)
    assert {move["state"] for move in found["moves"]} == {"moved"}
    assert found["progress"]["tasks_done"] == len(found["moves"])
    assert found["began_ms"] <= found["ended_ms"]
    assert len(job.assignment().nodes) == 6
    assert client.get(f"{answer.headers['location']}/plan").json()["cost"] == found["progress"]["bytes_done"]
    story = client.get(f"{answer.headers['location']}/story").json()
    assert story["total"] == len(story["lines"]) > 0


def test_nodes_are_added_and_removed_by_name(client: Client, job: PaperJob) -> None:
    assert client.change("jobs/words/scale", add=2, relax=True).status_code == 202
    wait_for_migration(job)
    assert client.change("jobs/words/scale", remove=["node-2", "node-5"], relax=True).status_code == 202
    wait_for_migration(job)
    assert set(job.assignment().nodes) == {"node-1", "node-3", "node-4", "node-6"}


def test_a_rebalance_keeps_the_nodes(client: Client, job: PaperJob) -> None:
    assert client.change("jobs/words/rebalance", relax=True, tau=0.05).status_code == 202
    wait_for_migration(job)
    assert set(job.assignment().nodes) == {"node-1", "node-2", "node-3", "node-4"}


@pytest.mark.parametrize("path", CHANGES)
@pytest.mark.parametrize("header", [None, "Bearer wrong-token-of-some-length", f"Basic {SECRET}", SECRET])
def test_no_change_without_the_token(client: Client, job: PaperJob, path: str, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    for body in (b'{"nodes": 6}', b"{", b""):
        answer = client.post(path, content=body, headers={**headers, "Content-Type": "application/json"})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert SECRET not in answer.text
    assert job.migration is None


def test_keys_are_split_or_the_response_says_why_not(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = client.change("jobs/words/split")
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:elastic:KeysCannotBeSplit")
    assert "Use partial(...)" in refused.json()["detail"]
    assert client.change("jobs/words/split", stage="sums").status_code == 404
    bodies: list[dict[str, object]] = [{"split": "tail"}, {"split": None}, {"stage": ""}, {"stage": 1}, {"keys": "all"}]
    for body in bodies:
        assert client.change("jobs/words/split", **body).status_code == 422

    def time_out(*_: object) -> None:
        raise TimeoutError("timed out after 60 s waiting for the change. Check the job's status.")

    monkeypatch.setattr(PaperJob, "split", time_out)
    late = client.change("jobs/words/split", split="all")
    assert (late.status_code, late.json()["title"]) == (503, "Service Unavailable")
    assert "Check the job's status" in late.json()["detail"]


def test_a_second_migration_is_refused_while_one_is_in_progress(client: Client, job: PaperJob) -> None:
    job.cluster.go.clear()
    assert client.change("jobs/words/scale", nodes=6, relax=True).status_code == 202
    for path, body in (("scale", {"nodes": 5}), ("rebalance", {})):
        answer = client.change(f"jobs/words/{path}", **body, relax=True)
        assert answer.status_code == 409
        assert answer.json()["type"] == "urn:elastic:MigrationInProgress"
        assert "Wait for it" in answer.json()["detail"]
    job.cluster.go.set()
    wait_for_migration(job)
    assert len(job.assignment().nodes) == 6


def test_a_request_beyond_the_task_slots_is_refused_by_plan_and_scale_alike(client: Client, job: PaperJob) -> None:
    job.cluster.slots = 5
    for answer in (client.get("jobs/words/plan", params={"nodes": 5}), client.change("jobs/words/scale", nodes=5)):
        assert answer.status_code == 422
        assert answer.json()["type"] == "urn:elastic:TooFewSlots"
        facts = {"nodes": 5, "slots": 5, "needed": 6, "master": "local[5]", "spares": 0}
        assert answer.json()["facts"] == facts
    assert job.migration is None


def test_one_of_many_concurrent_requests_wins(client: Client, job: PaperJob) -> None:
    job.cluster.go.clear()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: client.change("jobs/words/scale", nodes=n, relax=True), range(5, 13)))
    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 7
    job.cluster.go.set()
    wait_for_migration(job)
    won = next(answer.json() for answer in answers if answer.status_code == 202)
    assert len(job.assignment().nodes) == won["nodes_after"]


def test_a_migration_is_paused_resumed_and_cancelled(client: Client, job: PaperJob) -> None:
    job.cluster.go.clear()
    assert client.change("jobs/words/scale", nodes=8, relax=True, tasks_per_node=1).status_code == 202
    wait_until(lambda: "moving" in read_move_states(client, 1))
    assert client.change("jobs/words/migrations/1/pause").json()["is_paused"]
    job.cluster.go.set()
    wait_until(lambda: read_phase(client, 1) == "paused")
    half = client.get("jobs/words/migrations/1").json()
    assert 0 < half["progress"]["tasks_done"] < half["progress"]["tasks"]
    assert {move["state"] for move in half["moves"]} == {"moved", "waiting"}
    assert client.change("jobs/words/migrations/1/cancel").status_code == 200
    wait_for_migration(job)
    over = client.get("jobs/words/migrations/1").json()
    assert over["progress"]["phase"] == "cancelled"
    assert {move["state"] for move in over["moves"]} == {"moved", "skipped"}

    job.cluster.go.clear()
    assert client.change("jobs/words/scale", nodes=4, relax=True, tasks_per_node=1).status_code == 202
    client.change("jobs/words/migrations/2/pause")
    assert not client.change("jobs/words/migrations/2/resume").json()["is_over"]
    job.cluster.go.set()
    wait_for_migration(job)
    assert [one["number"] for one in client.get("jobs/words/migrations").json()["migrations"]] == [2, 1]


def test_a_migration_that_has_ended_cannot_be_changed(client: Client, job: PaperJob) -> None:
    client.change("jobs/words/scale", nodes=5, relax=True)
    wait_for_migration(job)
    for what in ("pause", "resume", "cancel"):
        answer = client.change(f"jobs/words/migrations/1/{what}")
        assert answer.status_code == 409
        assert answer.json()["type"] == "urn:elastic:MigrationOver"


def test_moving_tasks_are_distinguished_from_waiting_ones(client: Client, job: PaperJob) -> None:
    job.cluster.go.clear()
    client.change("jobs/words/scale", nodes=8, relax=True, mode="live")
    wait_until(lambda: read_move_states(client, 1) != {"waiting"})
    assert read_move_states(client, 1) == {"moving"}
    job.cluster.go.set()
    wait_for_migration(job)


def test_a_failed_migration_reports_its_error(client: Client, job: PaperJob) -> None:
    assert job.cluster.room_for == 16
    job.cluster.room_for = 4
    assert client.change("jobs/words/scale", nodes=6, relax=True).status_code == 202
    assert job.migration is not None
    wait_until(lambda: job.migration is not None and job.migration.is_over)
    failed = client.get("jobs/words/migrations/1").json()
    assert failed["progress"]["phase"] == "failed"
    assert "Free some task slots" in failed["error"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"nodes": 0},
        {"nodes": 4, "add": 1},
        {"nodes": True},
        {"nodes": "six"},
        {"nodes": 6, "mode": "fast"},
        {"nodes": 6, "transfer": "mail"},
        {"nodes": 6, "strategy": "random"},
        {"nodes": 6, "tasks_per_node": 0},
        {"nodes": 6, "bytes_per_node": -1},
        {"nodes": 6, "queue": True},
        {"nodes": 17},
        {"remove": ["node-9"]},
        {"remove": ["node-1", "node-2", "node-3", "node-4"]},
        {"remove": [""]},
        {"nodes": 6, "strategy": "mtm"},
        {"nodes": 6, "strategy": "ssm", "value": "foreseen"},
    ],
    ids=str,
)
def test_an_invalid_request_starts_nothing(client: Client, job: PaperJob, body: dict[str, object]) -> None:
    answer = client.change("jobs/words/scale", **body)
    assert answer.status_code == 422
    assert answer.json()["detail"]
    assert job.migration is None


def test_a_job_that_has_ended_is_not_scaled(client: Client, job: PaperJob) -> None:
    for job.state in ("stopped", "failed"):
        answer = client.change("jobs/words/scale", nodes=6)
        assert answer.status_code == 409
        assert answer.json()["type"] == "urn:elastic:JobStopped"


def test_a_migration_names_the_node_it_waits_for_and_its_cancellation_replaces_that_node(
    client: Client, job: PaperJob
) -> None:
    job.cluster.go.clear()
    number = client.change("jobs/words/scale", nodes=6, relax=True).json()["number"]
    path = f"jobs/words/migrations/{number}"
    deadline = time.monotonic() + 10
    while not (waiting := client.get(path).json()["progress"]["waiting_for"]):
        assert time.monotonic() < deadline
    assert not client.get(path).json()["progress"]["overdue"]
    node, _, rest = waiting[0].partition(" to release task")
    assert rest
    job.cluster.busy[node] = NodeStep("batch 7, round 0 of task 3 for 42 s", overdue=True)
    while not any(line.startswith(f"waits for {node}") for line in client.get(f"{path}/story").json()["lines"]):
        assert time.monotonic() < deadline
    progress = client.get(path).json()["progress"]
    assert progress["overdue"]
    assert f"{waiting[0]}; it has been taking batch 7, round 0 of task 3 for 42 s" in progress["waiting_for"]
    client.change(f"{path}/cancel")
    assert job.migration is not None
    assert job.migration.wait(10)
    assert client.get(path).json()["progress"]["phase"] == "cancelled"
    assert client.get(path).json()["progress"]["waiting_for"] == []
    assert [one.partition(":")[0] for one in job.cluster.replaced] == [node]
