"""Every command that talks to a job, against a real server on a job of paper."""

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
from elastic.cli import connection, scaling
from elastic.cli.client import Conflict, Unreachable
from elastic.cli.connection import Connection, announced
from tests.elastic.api.paper_job import PaperJob


def elastic(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=answer)


@pytest.mark.usefixtures("served")
def test_the_only_job_here_needs_no_name() -> None:
    shown = elastic("status")

    assert shown.exit_code == 0, shown.output
    assert "words: running" in shown.output
    assert "node-4" in shown.output
    told = json.loads(elastic("status", "--json").output)
    assert told["name"] == "words"
    assert set(told["utilisation"]) <= {node["name"] for node in told["nodes"]}
    assert told["migration"] is None


@pytest.mark.usefixtures("served")
def test_watching_refreshes_until_its_time_is_over() -> None:
    shown = elastic("watch", "--seconds", "0.5", "--every", "0.1")

    assert shown.exit_code == 0, shown.output
    assert "words: running" in shown.output


@pytest.mark.usefixtures("served")
def test_watching_into_a_file_writes_a_line_for_every_change(tmp_path: Path) -> None:
    assert elastic("scale", "--nodes", "5", "--relax", "--yes").exit_code == 0
    written = tmp_path / "watched"
    command = [sys.executable, "-m", "elastic", "watch", "--every", "0.1"]
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
    known = r"20[\d-]+ [\d:+]+ words: running, batch \d+ .* 5 nodes, 0 lost so far; migration 1: 4 -> 5 nodes, done, "
    assert all(re.match(known, line) for line in lines)


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("how", [["--json"], []])
def test_a_reader_that_closes_the_pipe_ends_the_command_without_a_traceback(how: list[str]) -> None:
    command = [sys.executable, "-m", "elastic", "watch", "--every", "0.1", *how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:  # noqa: S603
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert "words" in watching.stdout.readline()
        watching.stdout.close()
        assert watching.stderr.read() == ""
        watching.wait(30)


@pytest.mark.usefixtures("served")
def test_every_look_is_a_line_of_json_if_asked() -> None:
    assert elastic("rebalance", "--tau", "0.1", "--relax", "--yes").exit_code == 0
    lines = elastic("watch", "--seconds", "0.3", "--every", "0.1", "--json").stdout.splitlines()

    looks = [json.loads(line) for line in lines]
    assert len(looks) >= 2
    assert {look["name"] for look in looks} == {"words"}
    assert looks[-1]["migration"]["progress"]["phase"] == "done"


@pytest.mark.usefixtures("served")
def test_plans_of_several_strategies_stand_side_by_side_and_change_nothing(job: PaperJob) -> None:
    before = job.assignment()
    shown = elastic("plan", "--nodes", "6", "--relax")
    compared = json.loads(elastic("plan", "--nodes", "6", "--relax", "--strategy", "ssm", "--json").output)

    assert shown.exit_code == 0, shown.output
    assert all(strategy in shown.output for strategy in ("ssm", "even", "consistent-hash"))
    assert [one["strategy"] for one in compared["plans"]] == ["ssm"]
    assert job.assignment() == before


@pytest.mark.usefixtures("served")
def test_scaling_shows_the_plan_asks_and_follows_it_to_its_end(job: PaperJob) -> None:
    shown = elastic("scale", "--nodes", "5", "--relax", answer="y\n")

    assert shown.exit_code == 0, shown.output
    assert "Carry it out?" in shown.output
    assert "4 -> 5 nodes, done" in shown.stdout
    assert shown.stderr == ""
    assert len(job.assignment().nodes) == 5
    assert "ended" in elastic("journal").output
    assert json.loads(elastic("journal", "--limit", "1", "--json").output)["records"][0]["kind"] == "ended"


@pytest.mark.usefixtures("served")
def test_who_says_no_changes_nothing(job: PaperJob) -> None:
    assert elastic("scale", "--nodes", "5", "--relax", answer="n\n").exit_code == 1
    assert len(job.assignment().nodes) == 4


@pytest.mark.usefixtures("served")
def test_json_asks_nothing_and_tells_how_it_ended() -> None:
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
def test_an_unbalanced_plan_is_relaxed_unless_the_user_says_no(job: PaperJob) -> None:
    refused = elastic("scale", "--nodes", "5", "--tau", "0", "--no-relax", "--yes")
    assert refused.exit_code == 1
    assert "cannot balance" in refused.output
    assert elastic("scale", "--nodes", "5", "--tau", "0", "--yes").exit_code == 0
    assert job.migration is not None
    assert job.migration.plan.relaxed


def test_a_migration_is_paused_resumed_and_cancelled_and_a_second_one_is_refused() -> None:
    job = PaperJob(step_seconds=0.4)
    with serve(job) as server, announced(Connection(server.url, job.name, server.token)):
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


def test_changes_need_the_token_and_looking_does_not(served: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTIC_URL", served.url)
    assert elastic("status", "--job", "words").exit_code == 0
    refused = elastic("scale", "--job", "words", "--nodes", "5", "--relax", "--yes")
    assert refused.exit_code == 1
    assert "token" in refused.output
    assert served.token not in refused.output
    assert (
        elastic("scale", "--job", "words", "--nodes", "5", "--relax", "--yes", "--token", served.token).exit_code == 0
    )


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["scale"], 2, "Say what to change"),
        (["scale", "--nodes", "0"], 2, "0"),
        (["scale", "--nodes", "5", "--add", "1", "--yes"], 1, "give one of them"),
        (["scale", "--remove", "nobody", "--yes"], 1, "nobody"),
        (["scale", "--nodes", "17", "--yes"], 1, "at most 16"),
        (["status", "--job", "other"], 2, "no job 'other'"),
        (["status", "--url", "http://127.0.0.1:9", "--job", "words"], Unreachable.exit_code, "still running"),
        (["status", "--url", "http://127.0.0.1:9"], 2, "Name one"),
        (["learn", "--journal", "memory:x", "--job", "words", "--gaps", "error"], 2, "--gaps: for logs alone"),
        (["learn", "--journal", "memory:x", "--job", "words", "--no-spark", "--window", "1h"], 2, "--window, --spark"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(arguments: list[str], code: int, why: str) -> None:
    done = elastic(*arguments)

    assert done.exit_code == code, done.output
    assert why in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_a_job_that_is_not_there_is_the_same_mistake_here_and_elsewhere(served: Connection) -> None:
    there = elastic("status", "--url", served.url, "--job", "other")
    assert (there.exit_code, elastic("status", "--job", "other").exit_code) == (2, 2)
    assert "other" in there.output


@pytest.mark.parametrize("answer", [b"<html>", b"[1]"])
def test_what_is_no_api_is_told_in_a_sentence(answer: bytes) -> None:
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
    assert "no API does so" in done.output


def test_whoever_stops_following_a_migration_is_told_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(scaling, "time", SimpleNamespace(sleep=interrupted))
    job = PaperJob(step_seconds=0.1)
    with serve(job) as server, announced(Connection(server.url, job.name, server.token)):
        done = elastic("scale", "--nodes", "5", "--relax", "--yes")
        assert done.exit_code == 1
        assert "goes on without us" in done.output
        assert job.migration is not None
        assert job.migration.wait(30)
    assert len(job.assignment().nodes) == 5


def test_what_a_driver_leaves_is_for_its_user_alone_and_goes_with_it(tmp_path: Path) -> None:
    with announced(Connection("http://127.0.0.1:1", "words", "a token")) as path:
        assert path.stat().st_mode & 0o777 == 0o600
        found = connection.found(None, None, None, os.environ)
        assert (found.url, found.token) == ("http://127.0.0.1:1", "a token")
        assert "a token" not in repr(found)
    assert list(tmp_path.rglob("*.json")) == []


def test_what_a_killed_driver_left_is_taken_away() -> None:
    with announced(Connection("http://127.0.0.1:1", "words", "a token")) as path:
        path.write_text(json.dumps({**json.loads(path.read_text()), "pid": 2**22 + 1}))
        assert elastic("status").exit_code == 2
        assert not path.exists()
