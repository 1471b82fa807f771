"""`elastic run` around a job of paper: what it says, and to whom."""

import json
import signal
from pathlib import Path
from typing import Any, Self

import pytest
from click.testing import CliRunner, Result

from elastic.__main__ import main
from elastic.cli import run
from elastic.errors import ElasticError
from tests.elastic.api.paper_job import PaperJob

TOKEN = "a-token-that-nobody-else-may-see"  # noqa: S105


class Running(PaperJob):
    """Lives until somebody interrupts it, or as long as `life` says."""

    life: BaseException | None = None
    stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped = True

    def await_termination(self, _: float) -> bool:
        if self.life is not None:
            raise self.life
        return True

    def process_all_available(self) -> None: ...


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Running:
    running = Running()
    monkeypatch.setattr(run, "_job", lambda *_, **__: running)
    return running


def typed(*more: str) -> Result:
    words = ["--name", "words", "--store", "memory:", "--key", "word", "--api-token", TOKEN, *more]
    return CliRunner().invoke(main, ["run", "elastic.operators:CountByKey", *words])


def events(done: Result) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.output
    assert TOKEN not in done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("life", "more", "event"), [(KeyboardInterrupt(), [], "stopped"), (None, [], "ended"), (None, ["--once"], "done")]
)
def test_json_is_a_line_when_it_runs_and_one_when_it_ended(
    job: Running, life: BaseException | None, more: list[str], event: str
) -> None:
    job.life = life
    began, ended = events(typed("--json", *more))

    assert began["event"] == "running"
    assert began["url"].startswith("http://127.0.0.1:")
    assert ended == {"event": event, "name": "words"}
    assert job.stopped


def test_people_are_told_in_sentences(job: Running) -> None:
    job.life = KeyboardInterrupt()
    first, last = typed().stdout.splitlines()
    assert first.startswith("words runs. Page and API: http://127.0.0.1:")
    assert last == "words was stopped; run it again, and it goes on from here."


def test_a_job_that_fails_is_exit_code_1_and_a_sentence(job: Running, tmp_path: Path) -> None:
    job.life = ElasticError("it failed. Mend it.")
    done = typed()
    assert done.exit_code == 1
    assert "Error: it failed. Mend it." in done.stderr
    assert job.stopped
    assert not list(tmp_path.rglob("*.json"))


def test_signals_are_as_they_were_when_it_is_over(job: Running) -> None:
    before = signal.getsignal(signal.SIGTERM)
    job.life = KeyboardInterrupt()
    typed()
    assert signal.getsignal(signal.SIGTERM) is before
