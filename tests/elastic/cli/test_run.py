"""`elastic run` around a job of paper: what it says, and to whom."""

import json
import signal
import sys
from pathlib import Path
from typing import Any, Self

import click
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


def test_operators_come_from_a_class_a_value_or_a_function_that_may_give_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made_here.py").write_text(
        "from elastic.operators import CountByKey, Stage\n"
        "ready = CountByKey()\n"
        "def pipeline(times=2):\n"
        "    return [Stage(CountByKey(), key='word', name=f'count-{n}') for n in range(times)]\n"
        "def needs(times):\n"
        "    return CountByKey()\n"
        "def nothing():\n"
        "    return []\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    assert [len(run.made(f"made_here:{name}")) for name in ("CountByKey", "ready", "pipeline")] == [1, 1, 2]
    wrong = {"needs": "gives an operator by itself", "nothing": "no operator", "absent": "Check the name"}
    for name, why in wrong.items():
        with pytest.raises(click.BadParameter, match=why):
            run.made(f"made_here:{name}")
