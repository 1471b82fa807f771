"""A rebalance moves tasks, keys, or what is cheaper; a dry run shows both plans."""

from typing import Any

import pytest

from elastic.api.inputs import RebalanceBody
from elastic.control import KeyRequest
from elastic.control.key_loads import StageKeyLoads
from elastic.job.keys import KeyTableStatus
from migration import ScatteredAssignment
from migration.keys import KEY_STRATEGIES
from tests.elastic.api.conftest import Client
from tests.elastic.api.paper_job import PaperJob
from tests.elastic.api.paper_keys import KEYS
from tests.elastic.api.test_changes import read_phase, wait_for_migration, wait_until


def test_keys_are_moved_and_their_migration_can_be_followed(client: Client, job: PaperJob) -> None:
    answer = client.change("jobs/words/rebalance", level="keys", theta=0.1, key_strategy="mixed", stage="CountByKey")
    assert answer.status_code == 202
    wait_for_migration(job)
    found = client.get(answer.headers["location"]).json()
    progress = found["progress"]
    assert (found["level"], found["strategy"], found["moves"], progress["phase"]) == ("keys", "mixed", [], "done")
    assert progress["keys_done"] == progress["keys"] == len(found["key_moves"]) > 0
    assert progress["bytes_done"] == progress["bytes"] == sum(move["size"] for move in found["key_moves"])
    plan = client.get(f"{answer.headers['location']}/plan").json()
    assert plan["theta"] == 0.1
    assert plan["theta_reached"] <= 0.1 < plan["theta_before"]
    assert client.get("jobs/words/migrations").json()["migrations"] == [found]


def test_the_cheaper_level_that_balances_the_nodes_is_carried_out(client: Client, job: PaperJob) -> None:
    chosen = client.get("jobs/words/balance").json()["level"]
    assert client.change("jobs/words/rebalance", level="auto").json()["level"] == chosen == "keys"
    wait_for_migration(job)
    assert job.migration is not None
    assert "balances the nodes" in job.migration.plan.note
    assert client.change("jobs/words/rebalance", tau=0.05).json()["level"] == "tasks"
    wait_for_migration(job)
    assert [one["level"] for one in client.get("jobs/words/migrations").json()["migrations"]] == ["tasks", "keys"]


def test_a_migration_of_keys_is_paused_resumed_and_cancelled(client: Client, job: PaperJob) -> None:
    job.cluster.go.clear()
    job.cluster.step_seconds = 0.02
    assert client.change("jobs/words/rebalance", level="keys", bytes_per_node=1).status_code == 202
    wait_until(lambda: read_phase(client, 1) == "moving")
    assert client.change("jobs/words/rebalance", level="keys").status_code == 409
    job.cluster.go.set()
    wait_until(lambda: client.get("jobs/words/migrations/1").json()["progress"]["keys_done"])
    assert client.change("jobs/words/migrations/1/pause").json()["is_paused"]
    wait_until(lambda: read_phase(client, 1) == "paused")
    half = client.get("jobs/words/migrations/1").json()["progress"]
    assert 0 < half["keys_done"] < half["keys"]
    client.change("jobs/words/migrations/1/resume")
    wait_until(lambda: client.get("jobs/words/migrations/1").json()["progress"]["keys_done"] > half["keys_done"])
    assert client.change("jobs/words/migrations/1/cancel").status_code == 200
    wait_for_migration(job)
    over = client.get("jobs/words/migrations/1").json()["progress"]
    assert over["phase"] == "cancelled"
    [table] = job.key_tables()
    assert table.entries == 1 + over["keys_done"]  # one key was a guest before


def test_both_levels_are_planned_side_by_side_and_nothing_changes(client: Client, job: PaperJob) -> None:
    before = job.key_tables()
    asked: dict[str, Any] = {"theta": 0.2, "most_entries": 12, "stage": "CountByKey"}
    found = client.get("jobs/words/balance", params=asked).json()
    plans = job.plan_levels(**asked)
    assert plans.tasks is not None
    assert plans.keys is not None
    assert (found["level"], found["theta"]) == (plans.level, 0.2)
    assert found["reason"].startswith(f"level {plans.level}: moving ")
    assert found["tasks"]["plan"]["cost"] == plans.tasks.cost
    assert found["tasks"]["plan"]["tau"] == 0.2
    keys = found["keys"]["plan"]
    assert (keys["moves"], keys["entries"], keys["cost"]) == (
        len(plans.keys.moves),
        len(plans.keys.entries),
        plans.keys.cost,
    )
    assert keys["most_entries"] == 12
    assert found["keys"]["overload"] == pytest.approx(keys["theta_reached"])
    assert found["tasks"]["problem"] is found["keys"]["problem"] is None
    assert (job.key_tables(), job.migration) == (before, None)


def test_a_level_without_a_plan_has_its_problem_beside_the_plan_of_the_other() -> None:
    with Client(PaperJob(grouping="hash")) as client:
        found = client.get("jobs/words/balance").json()
        assert found["level"] == "tasks"
        assert found["tasks"]["plan"] is not None
        assert found["keys"]["plan"] is found["keys"]["overload"] is None
        assert found["keys"]["problem"]["type"] == "urn:elastic:KeysCannotMove"
        assert 'grouping="table"' in found["keys"]["problem"]["detail"]
        refused = client.change("jobs/words/rebalance", level="keys")
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:elastic:KeysCannotMove")


def test_without_relaxation_an_unbalanced_plan_is_a_problem_of_its_level(client: Client) -> None:
    found = client.get("jobs/words/balance", params={"relax": False}).json()
    assert found["level"] == "keys"
    assert found["tasks"]["problem"]["type"] == "urn:elastic:Infeasible"
    refused = client.get("jobs/words/balance", params={"relax": False, "theta": 0})
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:elastic:KeysInfeasible")


def test_a_wrong_name_of_a_stage_is_not_found_instead_of_choosing_the_other_level(client: Client) -> None:
    found = client.get("jobs/words/balance", params={"stage": "sums"})
    assert (found.status_code, found.json()["type"]) == (404, "urn:elastic:UnknownStage")


@pytest.mark.parametrize(
    "body",
    [
        {"level": "rows"},
        {"level": None},
        {"level": "keys", "theta": -1},
        {"level": "keys", "theta": "0.1"},
        {"level": "keys", "theta": True},
        {"level": "keys", "most_entries": 0},
        {"level": "keys", "most_entries": 1.5},
        {"level": "keys", "stage": ""},
        {"level": "keys", "key_strategy": "ssm"},
        {"level": "keys", "strategy": "ssm"},
        {"level": "keys", "tau": 0.2},
        {"level": "keys", "mode": "live"},
        {"level": "auto", "tau": 0.2},
        {"level": "auto", "strategy": "ssm"},
        {"level": "auto", "value": "foreseen"},
        {"theta": 0.1},
        {"level": "tasks", "stage": "CountByKey"},
        {"level": "keys", "queue": True},
    ],
    ids=str,
)
def test_an_option_that_is_invalid_or_of_another_level_starts_nothing(
    client: Client, job: PaperJob, body: dict[str, object]
) -> None:
    answer = client.change("jobs/words/rebalance", **body)
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:elastic:InvalidInput"
    assert job.migration is None


@pytest.mark.parametrize(
    "asked", [{"theta": "nan"}, {"theta": -1}, {"most_entries": 0}, {"key_strategy": "best"}, {"tau": 0.2}], ids=str
)
def test_an_invalid_dry_run_is_refused(client: Client, asked: dict[str, Any]) -> None:
    answer = client.get("jobs/words/balance", params=asked)
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:elastic:InvalidInput")


@pytest.mark.parametrize("strategy", KEY_STRATEGIES)
def test_every_strategy_of_keys_can_be_requested(strategy: str) -> None:
    body = RebalanceBody.model_validate({"level": "keys", "key_strategy": strategy, "theta": 0.3})
    arguments = body.to_arguments()
    assert arguments.pop("level") == "keys"
    assert KeyRequest(**arguments) == KeyRequest(theta=0.3, strategy=strategy)


def test_a_snapshot_has_the_key_tables_the_heaviest_keys_and_the_imbalance(client: Client, job: PaperJob) -> None:
    watcher = client.registry.find("words")
    first = watcher.poll()
    assert first.keys is not None
    assert [key.hash for key in first.keys] == [str(key.hash) for key in KEYS[:10]]
    assert {key.name for key in first.keys} == {None}
    [table] = first.tables
    assert (table.stage, table.entries, table.most_entries) == ("CountByKey", 1, KeyRequest.most_entries)
    assert [(one.task, one.keys) for one in table.guests] == [(3, 1)]
    job.rebalance(level="keys")
    wait_for_migration(job)
    second = watcher.poll()
    [status] = job.key_tables()
    assert status == KeyTableStatus(
        second.tables[0].stage, second.tables[0].entries, {one.task: one.keys for one in second.tables[0].guests}
    )
    assert sum(status.guests.values()) == status.entries > 1
    assert second.keys is not None
    assert len({key.node for key in second.keys}) > len({key.node for key in first.keys})  # not two seconds old
    assert second.imbalance == pytest.approx(0, abs=1e-6)  # fake nodes are equally busy


def test_a_snapshot_of_a_job_that_counts_no_keys_has_none(client: Client) -> None:
    assert client.registry.find("words").poll().keys is not None
    with Client(PaperJob(grouping="hash")) as other:
        snapshot = other.registry.find("words").poll()
        assert (snapshot.keys, snapshot.tables) == (None, [])


def test_migrations_of_keys_are_counted_in_the_metrics(client: Client, job: PaperJob) -> None:
    job.cluster.go.clear()
    client.change("jobs/words/rebalance", level="keys")
    client.registry.find("words").poll()
    assert job.migration is not None
    keys, size = job.migration.progress().keys, job.migration.progress().bytes
    during = client.get("metrics").text
    for name, value in (("keys", keys), ("keys_done", 0), ("bytes", size), ("tasks", 0), ("running", 1)):
        assert f'elastic_migration_{name}{{job_name="words"}} {float(value)}' in during
    job.cluster.go.set()
    wait_for_migration(job)
    client.registry.find("words").poll()
    after = client.get("metrics").text
    assert f'elastic_keys_moved_total{{job_name="words"}} {float(keys)}' in after
    assert 'elastic_migrations_total{job_name="words",outcome="done"} 1.0' in after
    assert f'elastic_key_table_entries{{job_name="words",stage="CountByKey"}} {float(keys + 1)}' in after
    assert 'elastic_key_table_entries_allowed{job_name="words",stage="CountByKey"} 3000.0' in after
    assert 'elastic_node_imbalance_ratio{job_name="words"}' in after
    assert "elastic_migration_keys{" not in after


def test_a_node_that_loses_all_its_tasks_while_keys_are_planned_does_not_fail_the_plan(
    job: PaperJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its standbys have taken over; moves to its former tasks still are right, since each key is a guest of a task."""
    planned = job._scaler.plan_keys(KeyRequest(theta=0.1))
    before, measure = job.assignment(), job.cluster.measure_keys
    targets = {move.target for move in planned.moves}

    def measure_and_lose(stage: str | None) -> StageKeyLoads:
        measured = measure(stage)
        other = next(node for node in before.nodes if node not in targets)
        owners = [other if owner in targets else owner for owner in before.owners]
        job.cluster.current = ScatteredAssignment.from_owners(owners, before.nodes)
        return measured

    monkeypatch.setattr(job.cluster, "measure_keys", measure_and_lose)
    assert job._scaler.plan_keys(KeyRequest(theta=0.1)).moves == planned.moves
    assert targets.isdisjoint(job.assignment().owners)
