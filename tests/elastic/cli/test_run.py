"""`elastic run` with a fake job: its output, and how it ends."""

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

TOKEN = "a-confidential-token"  # noqa: S105


class FakeRunningJob(PaperJob):
    """A job that ends at once, or with the exception `end`."""

    end: BaseException | None = None
    stopped = False
    freezes = 0  # calls of `gc.freeze`
    freezes_before_end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped = True

    def await_termination(self, _: float) -> bool:
        self.freezes_before_end = self.freezes
        if self.end is not None:
            raise self.end
        return True

    def process_all_available(self) -> None: ...


@pytest.fixture(autouse=True)
def _no_freeze(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the garbage collector of the test run as it is."""
    monkeypatch.setattr("gc.freeze", lambda: None)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> FakeRunningJob:
    running = FakeRunningJob()
    monkeypatch.setattr(run, "_start_job", lambda *_, **__: running)
    return running


def invoke(*options: str, operator: str = "elastic.operators:CountByKey") -> Result:
    words = ["--name", "words", "--store", "memory:", "--key", "word", "--api-token", TOKEN, *options]
    return CliRunner().invoke(main, ["run", operator, *words])


def events(done: Result) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.output
    assert TOKEN not in done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_garbage_collections_leave_out_what_was_loaded_before_the_job_runs(
    job: FakeRunningJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gc.freeze", lambda: setattr(job, "freezes", job.freezes + 1))
    assert invoke().exit_code == 0
    assert job.freezes_before_end == 1


@pytest.mark.parametrize(
    ("end", "options", "event"), [(KeyboardInterrupt(), [], "stopped"), (None, [], "ended"), (None, ["--once"], "done")]
)
def test_json_is_one_line_when_the_job_is_running_and_one_when_it_has_ended(
    job: FakeRunningJob, end: BaseException | None, options: list[str], event: str
) -> None:
    job.end = end
    began, ended = events(invoke("--json", *options))

    assert began["event"] == "running"
    assert began["url"].startswith("http://127.0.0.1:")
    assert ended == {"event": event, "name": "words"}
    assert job.stopped


def test_without_json_the_output_is_sentences(job: FakeRunningJob) -> None:
    job.end = KeyboardInterrupt()
    first, last = invoke().stdout.splitlines()
    assert first.startswith("words is running. Page and API: http://127.0.0.1:")
    assert last == "words was stopped. Run the same command again to resume it."


def test_a_failed_job_leads_to_exit_code_1_and_one_sentence(job: FakeRunningJob, tmp_path: Path) -> None:
    job.end = ElasticError("it failed. Fix it.")
    done = invoke()
    assert done.exit_code == 1
    assert "Error: it failed. Fix it." in done.stderr
    assert job.stopped
    assert not list(tmp_path.rglob("*.json"))


def test_signal_handlers_are_restored_at_the_end(job: FakeRunningJob) -> None:
    before = signal.getsignal(signal.SIGTERM)
    job.end = KeyboardInterrupt()
    invoke()
    assert signal.getsignal(signal.SIGTERM) is before


def test_operators_come_from_a_class_a_value_or_a_function_that_may_return_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "local_module.py").write_text(
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
    assert [len(run.load_operators(f"local_module:{name}")) for name in ("CountByKey", "ready", "pipeline")] == [
        1,
        1,
        2,
    ]
    wrong = {"needs": "without arguments", "nothing": "not an operator", "absent": "Check the name"}
    for name, why in wrong.items():
        with pytest.raises(click.BadParameter, match=why):
            run.load_operators(f"local_module:{name}")


@pytest.mark.parametrize(
    ("operator", "why"),
    [
        ("nowhere:Operator", "cannot import nowhere:Operator"),
        ("elastic.operators", "expected MODULE:OPERATOR"),
        ("os:getcwd", "not an operator"),
    ],
)
def test_a_wrong_operator_is_refused_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, operator: str, why: str
) -> None:
    monkeypatch.setitem(sys.modules, "elastic.spark.session", None)  # importing it fails
    refused = invoke(operator=operator)
    assert refused.exit_code == 2
    assert why in " ".join(refused.output.split())
