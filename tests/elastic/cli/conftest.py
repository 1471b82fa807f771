"""A fake job behind a real server that the commands can discover."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from elastic.api import serve
from elastic.cli.connection import Connection, announce
from tests.elastic.api.paper_job import PaperJob


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("ELASTIC_URL", raising=False)
    monkeypatch.delenv("ELASTIC_TOKEN", raising=False)


@pytest.fixture
def job() -> PaperJob:
    return PaperJob()


@pytest.fixture
def served(job: PaperJob) -> Iterator[Connection]:
    with serve(job) as server, announce(Connection(server.url, job.name, server.token)):
        yield Connection(server.url, job.name, server.token)
