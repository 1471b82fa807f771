"""`elastic rebalance` and `elastic plan` at the levels tasks, keys and auto, against a real server of a fake job."""

import json
import re
import time
from threading import Thread

import pytest
from click.testing import CliRunner, Result

from elastic.__main__ import main
from elastic.api import serve
from elastic.cli.client import Conflict, MigrationCancelled
from elastic.cli.connection import Connection, announce
from tests.elastic.api.paper_job import PaperJob


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def elastic(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=answer)


@pytest.mark.usefixtures("served")
def test_keys_move_after_a_question_that_shows_their_plan(job: PaperJob) -> None:
    shown = elastic("rebalance", "--level", "keys", "--theta", "0.1", "--most-entries", "30", answer="y\n")

    assert shown.exit_code == 0, shown.output
    assert job.migration is not None
    progress = job.migration.progress()
    plan, _, followed = shown.output.partition("Carry it out?")
    assert f"{progress.keys} keys" in plan
    assert "of 30" in plan
    assert "ssm" not in plan
    assert f"migration 1: 4 nodes, done, {progress.keys} of {progress.keys} keys, 17.4 kB of 17.4 kB" in followed
    assert elastic("status").output.count(f"{progress.keys} of {progress.keys} keys") == 1
    assert "keys ended" in elastic("journal").output


@pytest.mark.usefixtures("served")
def test_a_declined_plan_moves_no_key(job: PaperJob) -> None:
    assert elastic("rebalance", "--level", "keys", answer="n\n").exit_code == 1
    assert job.migration is None


@pytest.mark.usefixtures("served")
def test_auto_shows_both_plans_and_why_it_chooses_one(job: PaperJob) -> None:
    shown = elastic("rebalance", "--level", "auto", "--mode", "live", answer="y\n")

    assert shown.exit_code == 0, shown.output
    assert re.search(r"^tasks +ssm +0 tasks", shown.output, re.MULTILINE)
    assert re.search(r"^keys +knap +17 keys .* 166\.7% -> 7\.0% +18 of 3,000", shown.output, re.MULTILINE)
    assert "chosen level keys: moving 0 tasks" in shown.output
    assert job.migration is not None
    assert job.migration.level == "keys"


@pytest.mark.usefixtures("served")
def test_with_json_and_with_detach_nothing_is_asked(job: PaperJob) -> None:
    ended = json.loads(elastic("rebalance", "--level", "keys", "--stage", "CountByKey", "--json").output)
    assert (ended["level"], ended["progress"]["phase"]) == ("keys", "done")
    job.cluster.go.clear()
    begun = elastic("rebalance", "--level", "keys", "--theta", "0", "--yes", "--detach")
    assert begun.exit_code == 0, begun.output
    assert "migration 2: 4 nodes, moving" in begun.output or "migration 2: 4 nodes, planned" in begun.output
    job.cluster.go.set()


@pytest.mark.usefixtures("served")
def test_both_levels_are_planned_and_nothing_changes(job: PaperJob) -> None:
    before = job.key_tables()
    both, keys = elastic("plan", "--level", "auto"), elastic("plan", "--level", "keys", "--key-strategy", "min-table")
    document = json.loads(elastic("plan", "--level", "auto", "--theta", "0.5", "--json").output)

    assert both.exit_code == keys.exit_code == 0, both.output + keys.output
    assert "chosen level keys" in both.output
    assert "min-table" in keys.output
    assert "chosen" not in keys.output
    assert (document["level"], document["theta"]) == ("tasks", 0.5)
    assert (job.key_tables(), job.migration) == (before, None)


def test_where_no_key_can_move_the_reason_is_shown_and_nothing_is_asked() -> None:
    job = PaperJob(grouping="hash")
    with serve(job) as server, announce(Connection(server.url, job.name, server.token)):
        refused = elastic("rebalance", "--level", "keys")
        assert refused.exit_code == 1
        assert "grouped by table, so no key can move" in refused.output
        assert "Carry it out?" not in refused.output
        assert "moving keys is impossible" in elastic("plan", "--level", "auto").output
        assert elastic("keys").exit_code == 1


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["rebalance", "--level", "keys", "--tau", "0.2"], "--tau is not an option of level keys"),
        (["rebalance", "--level", "auto", "--strategy", "ssm"], "--strategy is not an option of level auto"),
        (["rebalance", "--theta", "0.1"], "--theta is not an option of level tasks"),
        (["plan", "--level", "auto", "--nodes", "6"], "--nodes is not an option of level auto"),
        (["plan", "--level", "keys", "--strategy", "ssm"], "--strategy is not an option of level keys"),
        (["rebalance", "--level", "rows"], "'rows' is not one of"),
        (["rebalance", "--level", "keys", "--stage", "sums", "--yes"], "there is no stage 'sums'"),
    ],
)
def test_an_unknown_option_or_one_of_another_level_is_refused(job: PaperJob, arguments: list[str], why: str) -> None:
    refused = elastic(*arguments)
    assert refused.exit_code == 2, refused.output
    assert why in " ".join(refused.output.split())
    assert job.migration is None


def test_a_migration_of_keys_is_paused_resumed_watched_and_cancelled() -> None:
    job = PaperJob(step_seconds=0.2)
    with serve(job) as server, announce(Connection(server.url, job.name, server.token)):
        job.rebalance(level="keys", bytes_per_node=1)
        assert elastic("rebalance", "--level", "keys", "--yes").exit_code == Conflict.exit_code
        assert json.loads(elastic("pause", "--json").output)["is_paused"]
        assert elastic("resume").exit_code == 0
        watched = elastic("watch", "--duration", "0.1", "--interval", "0.1")
        assert "of 17 keys" in watched.output
        cancelled = elastic("cancel")
        assert "of 17 keys" in cancelled.output
        assert job.migration is not None
        assert job.migration.wait(10)
        assert job.migration.phase == "cancelled"


def test_the_exit_code_says_that_a_migration_of_keys_was_cancelled_while_it_was_followed() -> None:
    job = PaperJob()
    with serve(job) as server, announce(Connection(server.url, job.name, server.token)):
        job.cluster.go.clear()

        def cancel() -> None:
            while job.migration is None:
                time.sleep(0.01)
            job.migration.cancel()
            job.cluster.go.set()

        cancelling = Thread(target=cancel)
        cancelling.start()
        assert elastic("rebalance", "--level", "keys", "--yes").exit_code == MigrationCancelled.exit_code
        cancelling.join()
