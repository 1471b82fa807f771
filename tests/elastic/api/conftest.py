"""A client for a fake job behind the real application."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from elastic.api.access import AllowedHosts, Token
from elastic.api.application import create_application
from elastic.api.registry import JobRegistry
from tests.elastic.api.paper_job import PaperJob

SECRET = "a-token-for-tests-only"  # noqa: S105


class Client(TestClient):
    """Paths without a slash in front are under /api/v1; `change` sends the token."""

    def __init__(self, *jobs: PaperJob) -> None:
        self.registry = JobRegistry(jobs)
        app = create_application(self.registry, AllowedHosts("127.0.0.1"), Token(SECRET))
        super().__init__(app, base_url="http://127.0.0.1")

    def request(self, method: str, url: Any, **options: Any) -> Any:
        return super().request(method, url if url.startswith("/") else f"/api/v1/{url}", **options)

    def change(self, path: str, **body: object) -> Any:
        return self.post(path, json=body, headers={"Authorization": f"Bearer {SECRET}"})


@pytest.fixture
def job() -> PaperJob:
    return PaperJob()


@pytest.fixture
def client(job: PaperJob) -> Iterator[Client]:
    with Client(job) as client:
        yield client
