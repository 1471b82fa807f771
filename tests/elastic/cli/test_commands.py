"""Every command that talks to a job, against a real server of a fake job."""

import json
import os
import re
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from elastic.__main__ import main
from elastic.api import serve
from elastic.cli import connection, migrating
from elastic.cli.client import Conflict, Unreachable
from elastic.cli.connection import Connection, announce
from tests.elastic.api.paper_job import PaperJob


def elastic(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=answer)


@pytest.mark.usefixtures("served")
def test_the_only_running_job_needs_no_name() -> None:
    shown = elastic("status")

    assert shown.exit_code == 0, shown.output
    assert "words: running" in shown.output
    assert "node-4" in shown.output
    status = json.loads(elastic("status", "--json").output)
    assert status["name"] == "words"
    assert set(status["utilisation"]) <= {node["name"] for node in status["nodes"]}
    assert status["migration"] is None


@pytest.mark.usefixtures("served")
def test_watch_ends_after_its_duration() -> None:
    shown = elastic("watch", "--duration", "0.5", "--interval", "0.1")

    assert shown.exit_code == 0, shown.output
    assert "words: running" in shown.output


@pytest.mark.usefixtures("served")
def test_watch_into_a_file_writes_one_line_per_change(tmp_path: Path) -> None:
    assert elastic("scale", "--nodes", "5", "--relax", "--yes").exit_code == 0
    written = tmp_path / "watched"
    command = [sys.executable, "-m", "elastic", "watch", "--interval", "0.1"]
    with (
        written.open("w") as file,
        subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE, text=True) as watching,  # noqa: S603
    ):
        for _ in range(300):
            if len(written.read_text().splitlines()) > 2:
                break
            time.sleep(0.1)
        watching.terminate()
    lines = written.read_text().splitlines()
    assert len(lines) > 2
    assert len({line.partition("words: ")[2] for line in lines}) == len(lines)
    known = r"20[\d-]+ [\d:+]+ words: running, batch \d+ .* 5 nodes, 0 losses; migration 1: 4 -> 5 nodes, done, "
    assert all(re.match(known, line) for line in lines)


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("how", [["--json"], []])
def test_a_reader_that_closes_the_pipe_ends_the_command_without_a_traceback(how: list[str]) -> None:
    command = [sys.executable, "-m", "elastic", "watch", "--interval", "0.1", *how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:  # noqa: S603
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert "words" in watching.stdout.readline()
        watching.stdout.close()
        assert watching.stderr.read() == ""
        watching.wait(30)


@pytest.mark.usefixtures("served")
def test_watch_can_print_one_line_of_json_per_poll() -> None:
    assert elastic("rebalance", "--tau", "0.1", "--relax", "--yes").exit_code == 0
    lines = elastic("watch", "--duration", "0.3", "--interval", "0.1", "--json").stdout.splitlines()

    polls = [json.loads(line) for line in lines]
    assert len(polls) >= 2
    assert {poll["name"] for poll in polls} == {"words"}
    assert polls[-1]["migration"]["progress"]["phase"] == "done"


@pytest.mark.usefixtures("served")
def test_plans_of_several_strategies_are_compared_and_change_nothing(job: PaperJob) -> None:
    before = job.assignment()
    shown = elastic("plan", "--nodes", "6", "--relax")
    compared = json.loads(elastic("plan", "--nodes", "6", "--relax", "--strategy", "ssm", "--json").output)

    assert shown.exit_code == 0, shown.output
    assert all(strategy in shown.output for strategy in ("ssm", "even", "consistent-hash"))
    assert [one["strategy"] for one in compared["plans"]] == ["ssm"]
    assert job.assignment() == before


@pytest.mark.usefixtures("served")
def test_the_heaviest_keys_are_shown_with_their_names(job: PaperJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    shown, one = elastic("keys"), elastic("keys", "--top", "1", "--stage", "CountByKey", "--json")

    assert shown.exit_code == 0, shown.output
    assert all(text in shown.output for text in ("Zürich, 8001", "3 guest", "1,200", "5.6%", "4.1 kB"))
    [key] = json.loads(one.output)["keys"]
    assert key == {**job.keys()[0].to_json(), "hash": "9223372036854775807"}
    assert "there is no stage 'sums'" in elastic("keys", "--stage", "sums").output


def test_without_the_token_keys_have_no_names(served: Connection) -> None:
    shown = elastic("keys", "--url", served.url, "--job", served.job)
    assert "9223372036854775807" in shown.output
    assert "Zürich" not in shown.output


@pytest.mark.usefixtures("served")
def test_scale_shows_the_plan_asks_and_follows_the_migration_to_its_end(job: PaperJob) -> None:
    shown = elastic("scale", "--nodes", "5", "--relax", answer="y\n")

    assert shown.exit_code == 0, shown.output
    assert "Carry it out?" in shown.output
    assert "4 -> 5 nodes, done" in shown.stdout
    assert shown.stderr == ""
    assert len(job.assignment().nodes) == 5
    assert "ended" in elastic("journal").output
    assert json.loads(elastic("journal", "--limit", "1", "--json").output)["records"][0]["kind"] == "ended"


@pytest.mark.usefixtures("served")
def test_a_declined_confirmation_changes_nothing(job: PaperJob) -> None:
    assert elastic("scale", "--nodes", "5", "--relax", answer="n\n").exit_code == 1
    assert len(job.assignment().nodes) == 4


@pytest.mark.usefixtures("served")
def test_with_json_scale_asks_nothing_and_prints_the_ended_migration() -> None:
    ended = json.loads(elastic("scale", "--add", "1", "--relax", "--json").output)
    again = json.loads(elastic("rebalance", "--tau", "0.1", "--relax", "--json").output)

    assert ended["progress"]["phase"] == again["progress"]["phase"] == "done"


@pytest.mark.usefixtures("served")
def test_a_request_beyond_the_task_slots_is_refused(job: PaperJob) -> None:
    job.cluster.slots = 5
    for command in (("plan",), ("scale",), ("scale", "--yes")):
        refused = elastic(*command, "--nodes", "5")
        assert refused.exit_code == 1
        assert "5 nodes need 6 task slots" in refused.output
    assert job.migration is None


@pytest.mark.usefixtures("served")
def test_an_unbalanced_plan_is_relaxed_unless_the_user_forbids_it(job: PaperJob) -> None:
    refused = elastic("scale", "--nodes", "5", "--tau", "0", "--no-relax", "--yes")
    assert refused.exit_code == 1
    assert "cannot balance" in refused.output
    assert elastic("scale", "--nodes", "5", "--tau", "0", "--yes").exit_code == 0
    assert job.migration is not None
    assert job.migration.plan.relaxed


def test_a_migration_is_paused_resumed_and_cancelled_and_a_second_one_is_refused() -> None:
    job = PaperJob(step_seconds=0.4)
    with serve(job) as server, announce(Connection(server.url, job.name, server.token)):
        assert elastic("scale", "--nodes", "8", "--relax", "--yes", "--detach", "--tasks-per-node", "1").exit_code == 0
        refused = elastic("scale", "--nodes", "3", "--relax", "--yes")
        assert refused.exit_code == Conflict.exit_code, refused.output
        assert json.loads(elastic("pause", "--json").output)["is_paused"]
        assert elastic("resume").exit_code == 0
        assert elastic("cancel").exit_code == 0
        migration = job.migration
        assert migration is not None
        assert migration.wait(30)
        assert migration.phase == "cancelled"
        nothing = elastic("cancel")
        assert nothing.exit_code == 1
        assert "nothing to cancel" in nothing.output


def test_changes_need_the_token_and_reads_do_not(served: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTIC_URL", served.url)
    assert elastic("status", "--job", "words").exit_code == 0
    refused = elastic("scale", "--job", "words", "--nodes", "5", "--relax", "--yes")
    assert refused.exit_code == 1
    assert "Give it with --token or in ELASTIC_TOKEN" in refused.output
    assert served.token not in refused.output
    assert (
        elastic("scale", "--job", "words", "--nodes", "5", "--relax", "--yes", "--token", served.token).exit_code == 0
    )


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["scale"], 2, "Give one of --nodes"),
        (["scale", "--nodes", "0"], 2, "0"),
        (["scale", "--nodes", "5", "--add", "1", "--yes"], 1, "give one of them"),
        (["scale", "--remove", "nobody", "--yes"], 1, "nobody"),
        (["scale", "--nodes", "17", "--yes"], 1, "at most 16"),
        (["status", "--job", "other"], 2, "no job 'other'"),
        (["status", "--url", "http://127.0.0.1:9", "--job", "words"], Unreachable.exit_code, "still running"),
        (["status", "--url", "http://127.0.0.1:9"], 2, "Name one"),
        (
            ["learn", "--journal", "memory:x", "--job", "words", "--gaps", "error"],
            2,
            "--gaps: not allowed with --journal",
        ),
        (["learn", "--journal", "memory:x", "--job", "words", "--no-spark", "--window", "1h"], 2, "--window, --spark"),
    ],
)
def test_a_failure_is_explained_in_one_sentence(arguments: list[str], code: int, why: str) -> None:
    done = elastic(*arguments)

    assert done.exit_code == code, done.output
    assert why in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_an_unknown_job_has_the_same_exit_code_locally_and_by_url(served: Connection) -> None:
    there = elastic("status", "--url", served.url, "--job", "other")
    assert (there.exit_code, elastic("status", "--job", "other").exit_code) == (2, 2)
    assert "other" in there.output


@pytest.mark.parametrize("answer", [b"<html>", b"[1]"])
def test_a_server_that_is_no_api_is_explained_in_one_sentence(answer: bytes) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if answer == b"<html>" else 500)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            done = elastic("journal", "--url", f"http://127.0.0.1:{server.server_port}", "--job", "words")
        finally:
            server.shutdown()
            thread.join()
    assert done.exit_code == 1
    assert "is not the API of a job" in done.output


def test_a_user_who_stops_watching_a_migration_learns_that_it_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(migrating, "time", SimpleNamespace(sleep=interrupt))
    job = PaperJob(step_seconds=0.1)
    with serve(job) as server, announce(Connection(server.url, job.name, server.token)):
        done = elastic("scale", "--nodes", "5", "--relax", "--yes")
        assert done.exit_code == 1
        assert "the migration continues" in done.output
        assert job.migration is not None
        assert job.migration.wait(30)
    assert len(job.assignment().nodes) == 5


def test_a_connection_file_is_readable_by_its_user_only_and_deleted_at_the_end(tmp_path: Path) -> None:
    with announce(Connection("http://127.0.0.1:1", "words", "a token")) as path:
        assert path.stat().st_mode & 0o777 == 0o600
        found = connection.find_connection(None, None, None, os.environ)
        assert (found.url, found.token) == ("http://127.0.0.1:1", "a token")
        assert "a token" not in repr(found)
    assert list(tmp_path.rglob("*.json")) == []


def test_of_two_drivers_of_one_name_commands_find_the_newer_one(caplog: pytest.LogCaptureFixture) -> None:
    with announce(Connection("http://127.0.0.1:1", "words", "a token")) as path:
        older = json.loads(path.read_text())
        path.write_text(json.dumps({**older, "pid": os.getppid()}))
        with announce(Connection("http://127.0.0.1:2", "words", "another token")):
            assert "by --url http://127.0.0.1:1" in caplog.text
            assert "token" not in caplog.text
            assert connection.find_connection("words", None, None, os.environ).url == "http://127.0.0.1:2"
        assert not path.exists()


def test_an_older_driver_leaves_the_connection_file_of_a_newer_one() -> None:
    with announce(Connection("http://127.0.0.1:1", "words", "a token")) as path:
        newer = json.dumps({**json.loads(path.read_text()), "url": "http://127.0.0.1:2", "pid": os.getppid()})
        path.write_text(newer)
    assert path.read_text() == newer


def test_a_command_without_a_job_says_which_ones_are_running() -> None:
    none = elastic("status")
    assert none.exit_code == 2
    assert "no job of this user is running on this machine. Start one with `elastic run`" in none.stderr
    with (
        announce(Connection("http://127.0.0.1:1", "words", "")),
        announce(Connection("http://127.0.0.1:1", "sums", "")),
    ):
        several = elastic("status")
    assert several.exit_code == 2
    assert "several jobs are running: sums, words. Name one with --job." in several.stderr


def test_the_connection_file_of_a_killed_driver_is_deleted() -> None:
    with announce(Connection("http://127.0.0.1:1", "words", "a token")) as path:
        path.write_text(json.dumps({**json.loads(path.read_text()), "pid": 2**22 + 1}))
        assert elastic("status").exit_code == 2
        assert not path.exists()
