"""Checks on requests, and headers of responses."""

import logging
from typing import Any

import pytest

from elastic.api.guard import RequestGuard
from tests.elastic.api.conftest import SECRET, Client
from tests.elastic.api.paper_job import PaperJob


def test_a_rebound_host_name_is_refused_first(client: Client) -> None:
    for path in ("jobs", "health", "/", "/page/main.js"):
        answer = client.get(path, headers={"Host": "evil.example.org"})
        assert answer.status_code == 421
        assert answer.json()["type"] == "urn:elastic:HostNotAllowed"
    allowed = {"Host": "evil.example.org", "Authorization": f"Bearer {SECRET}"}
    assert client.post("jobs/words/scale", json={"nodes": 6}, headers=allowed).status_code == 421


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_from_pages_of_other_sites_are_refused(client: Client, site: str) -> None:
    asked = client.get("jobs", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"})
    assert asked.status_code == 403
    followed = client.get("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"})
    assert followed.status_code == 200
    assert client.get("jobs", headers={"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}).status_code == 200


def test_no_origin_is_allowed_by_cors(client: Client) -> None:
    headers = {"Origin": "http://evil.example.org", "Access-Control-Request-Method": "POST"}
    for answer in (client.options("jobs/words/scale", headers=headers), client.get("jobs", headers=headers)):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_large_body_is_not_read(client: Client) -> None:
    token = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
    answer = client.post("jobs/words/scale", content=b" " * 70_000, headers=token)
    assert answer.status_code == 413
    assert answer.json()["facts"] == {"limit": 65_536}
    endless = client.post("jobs/words/scale", content=iter([b" " * 10_000] * 8), headers=token)
    assert endless.status_code == 413
    assert endless.json()["facts"] == {"limit": 65_536}


def test_every_response_has_the_security_headers(client: Client) -> None:
    answers = [client.get(path) for path in ("/", "jobs", "nothing", "/page/style.css")]
    answers += [client.post("jobs/words/scale"), client.get("jobs", headers={"Host": "evil.example.org"})]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.get("jobs").headers["cache-control"] == "no-store"


def test_an_unexpected_error_is_a_500_without_details(
    job: PaperJob, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("a secret of the program")

    monkeypatch.setattr(job, "assignment", broken)
    with Client(job) as client:
        transport: Any = client._transport
        transport.raise_server_exceptions = False
        answer = client.get("jobs/words/assignment")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Look at the log" in answer.json()["detail"]
    assert "a secret of the program" in caplog.text


def test_the_token_is_never_logged(client: Client, job: PaperJob, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        client.change("jobs/words/scale", nodes=5, relax=True)
        client.post("jobs/words/scale", headers={"Authorization": f"Bearer {SECRET}x"})
        assert job.migration is not None
        assert job.migration.wait(10)
    assert SECRET not in caplog.text


def test_the_guard_is_the_only_middleware(client: Client) -> None:
    assert [layer.cls for layer in client.app.user_middleware] == [RequestGuard]  # type: ignore[attr-defined]
