"""Routes that only read."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from elastic.control.standbys import StandbyCopies
from elastic.job.status import StepStatus
from elastic.routing import Routing
from elastic.routing.standbys import place_standbys
from migration import Assignment, Plan, ownership_from_dict
from tests.elastic.api.conftest import SECRET, Client
from tests.elastic.api.paper_cluster import PaperCluster
from tests.elastic.api.paper_job import PaperJob


def test_jobs_are_listed_with_their_operators() -> None:
    with Client(PaperJob("words"), PaperJob("clicks", tasks=8, nodes=2)) as client:
        found = client.get("jobs").json()
        assert [one["name"] for one in found] == ["words", "clicks"]
        assert client.get("jobs/clicks").json() == found[1]
    assert found[1] == {
        "name": "clicks",
        "state": "running",
        "tasks": 8,
        "nodes": 2,
        "operators": [{"name": "CountByKey", "key": ["word"], "grouping": "hash"}],
        "graph": {
            "nodes": [
                {"kind": "input", "name": "input", "label": "input", "column": 0, "row": 0},
                {"kind": "stage", "name": "CountByKey", "label": "CountByKey", "column": 1, "row": 0},
            ],
            "edges": [[0, 1]],
        },
    }


def test_the_status_is_that_of_the_job(client: Client, job: PaperJob) -> None:
    job.losses = 1
    found = client.get("jobs/words/status").json()
    known = json.loads(json.dumps(job.status().to_json()))
    moving = {"last_batch", "published_batch", "saved_batch", "rows"}
    assert {name: found[name] for name in found.keys() - moving} == {
        name: known[name] for name in known.keys() - moving
    }


def test_keys_have_names_only_for_requests_with_the_token(client: Client, job: PaperJob) -> None:
    [guest, unnamed] = [key.to_json() for key in job.keys(top=2)]
    known = [{**guest, "hash": "9223372036854775807"}, {**unnamed, "hash": "-5"}]
    token = {"Authorization": f"Bearer {SECRET}"}
    assert client.get("jobs/words/keys?top=2", headers=token).json() == {"keys": known}
    assert client.get("jobs/words/keys?top=1", headers=token).json() == {"keys": known[:1]}
    without_names = {"keys": [{**key, "name": None} for key in known]}
    assert client.get("jobs/words/keys?top=2").json() == without_names
    wrong_token = {"Authorization": "Bearer another-token-of-nobody"}
    assert client.get("jobs/words/keys?top=2", headers=wrong_token).json() == without_names


def test_no_open_read_has_the_name_of_a_key(client: Client) -> None:
    paths = [path for path, item in client.get("openapi.json").json()["paths"].items() if "get" in item]
    reads = [path.replace("{job}", "words") for path in paths if "{number}" not in path and "events" not in path]
    assert any(path.endswith("/keys") for path in reads)
    for path in reads:
        assert "Zürich" not in client.get(path).text


def test_a_stage_that_the_job_does_not_have_is_not_found(client: Client) -> None:
    found = client.get("jobs/words/keys", params={"stage": "sums"})
    assert (found.status_code, found.json()["type"]) == (404, "urn:elastic:UnknownStage")


def test_assignment_workload_and_load_are_those_of_the_job(client: Client, job: PaperJob) -> None:
    assert ownership_from_dict(client.get("jobs/words/assignment").json()) == job.assignment()
    workload = client.get("jobs/words/workload").json()
    assert len(workload["work"]) == len(workload["state"]) == 16
    assert workload["state"] == job.workload().state.tolist()
    time.sleep(0.01)
    job.workload()
    load = client.get("jobs/words/load", params={"seconds": 5}).json()
    assert load["utilisation"].keys() == {"node-1", "node-2", "node-3", "node-4"}
    assert load["max_pending_batches"] == 4


def test_several_strategies_are_compared_and_nothing_changes(client: Client, job: PaperJob) -> None:
    before = job.assignment()
    found = client.get("jobs/words/plan", params={"nodes": 6, "relax": True}).json()["plans"]
    assert [one["strategy"] for one in found] == ["ssm", "even", "consistent-hash"]
    for one in found:
        plan = Plan.from_dict(one["plan"])
        assert len(plan.target.nodes) == 6
        assert one["plan"]["joining"] == ["node-5", "node-6"]
        assert one["problem"] is None
    assert found[0]["plan"]["cost"] <= min(one["plan"]["cost"] for one in found if one["plan"]["balanced"])
    assert job.assignment() is before
    assert job.journal() == []


def test_a_warm_plan_shows_what_moves_and_what_is_copied_in_the_background(
    client: Client, job: PaperJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = job.assignment()
    assert isinstance(current, Assignment)
    standbys = place_standbys(current, 1, {})
    routing = replace(Routing.by_hash(current), standbys=standbys)
    monkeypatch.setattr(PaperCluster, "standbys", lambda _: StandbyCopies(routing, standbys, 1, {}))
    asked: dict[str, Any] = {"remove": current.nodes[1], "tau": 5, "strategy": "ssm"}
    [warm, other] = [
        client.get("jobs/words/plan", params={**asked, "mode": mode}).json()["plans"][0]["plan"]
        for mode in ("warm", "progressive")
    ]
    assert (warm["cost"], warm["switches"]) == (0, len(warm["moves"]))
    assert warm["background_cost"] > 0
    assert other["cost"] > 0
    assert (other["switches"], other["background_cost"]) == (None, None)


def test_a_strategy_without_a_plan_reports_its_problem_beside_the_other_plans(client: Client) -> None:
    asked: dict[str, Any] = {"nodes": 5, "relax": True, "strategy": ["ssm", "mtm"]}
    found = client.get("jobs/words/plan", params=asked).json()["plans"]
    assert found[0]["plan"] is not None
    assert found[1]["plan"] is None
    assert "value function" in found[1]["problem"]["detail"]


def test_the_problem_of_an_infeasible_plan_names_a_feasible_tau(client: Client) -> None:
    asked: dict[str, Any] = {"nodes": 15, "tau": 0.0, "relax": False, "strategy": "ssm"}
    problem = client.get("jobs/words/plan", params=asked).json()["plans"][0]["problem"]
    assert problem["type"] == "urn:elastic:Infeasible"
    assert problem["facts"]["smallest_tau"] > 0
    assert "Raise tau to" in problem["detail"]
    asked["tau"] = problem["facts"]["smallest_tau"]
    assert client.get("jobs/words/plan", params=asked).json()["plans"][0]["plan"]["balanced"]


@pytest.mark.parametrize(
    "asked",
    [
        {"nodes": 0},
        {"nodes": 2000},
        {"nodes": 4, "add": 1},
        {"add": "many"},
        {"tau": -1},
        {"tau": "nan"},
        {"tau": "inf"},
        {"strategy": "random"},
        {"colour": "blue"},
        {"remove": "node-9"},
        {"nodes": 17},
    ],
    ids=str,
)
def test_an_invalid_plan_request_is_refused(client: Client, asked: dict[str, Any]) -> None:
    answer = client.get("jobs/words/plan", params=asked)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 422


def test_the_journal_comes_in_pages_newest_first(client: Client, job: PaperJob) -> None:
    for nodes in (5, 4, 6):
        assert job.scale(nodes, relax=True).wait(10)
    first = client.get("jobs/words/journal", params={"limit": 4}).json()
    assert [record["number"] for record in first["records"]] == [6, 5, 4, 3]
    assert [record["kind"] for record in first["records"]] == ["ended", "began", "ended", "began"]
    assert first["total"] == 6
    second = client.get("jobs/words/journal", params={"limit": 4, "before": first["before"]}).json()
    assert [record["number"] for record in second["records"]] == [2, 1]
    assert second["before"] is None


def test_health_is_failing_when_a_job_has_failed(client: Client, job: PaperJob) -> None:
    assert client.get("health").json() == {"status": "ok", "jobs": {"words": "running"}, "problems": {}}
    job.state = "failed"
    client.registry.find("words").poll()
    answer = client.get("health")
    assert answer.status_code == 503
    assert answer.json() == {"status": "failing", "jobs": {"words": "failed"}, "problems": {}}


def test_unknown_jobs_migrations_and_paths_are_not_found(client: Client) -> None:
    for path in ("jobs/wrods", "jobs/wrods/events", "jobs/words/migrations/1", "nothing"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json()["status"] == 404
    assert "'words'" not in client.get("jobs/wrods").json()["detail"].replace("'wrods'", "")


def test_a_job_with_an_overdue_step_and_a_failed_sink_is_degraded_with_its_problems(
    client: Client, job: PaperJob
) -> None:
    job.step = StepStatus(7, 0, (3,), 42.0, overdue=True)
    job.sink_error = "OSError: the folder is gone"
    job.problems = ["node-1 has been taking batch 7", "results no longer reach the sink"]
    client.registry.find("words").poll()
    answer = client.get("health")
    assert answer.status_code == 200
    assert answer.json() == {"status": "degraded", "jobs": {"words": "degraded"}, "problems": {"words": job.problems}}
    status = client.get("jobs/words/status").json()
    assert status["sink_error"] == "OSError: the folder is gone"
    assert status["nodes"][0]["step"] == {"batch": 7, "round": 0, "tasks": [3], "seconds": 42.0, "overdue": True}
    snapshot = client.get("jobs/words/snapshot").json()
    assert (snapshot["problems"], snapshot["nodes"][0]["step"]["batch"]) == (job.problems, 7)
    metrics = client.get("metrics").text
    for line in (
        'elastic_sink_failed{job_name="words"} 1.0',
        'elastic_problems{job_name="words"} 2.0',
        'elastic_node_step_seconds{job_name="words",node="node-1"} 42.0',
        'elastic_node_step_overdue{job_name="words",node="node-1"} 1.0',
    ):
        assert line in metrics
