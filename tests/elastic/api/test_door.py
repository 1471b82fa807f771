"""What may come in, and what every answer carries."""

import logging
from typing import Any

import pytest

from elastic.api.door import Door
from tests.elastic.api.conftest import SECRET, Client
from tests.elastic.api.paper_job import PaperJob


def test_a_rebound_name_is_refused_before_anything_else(client: Client) -> None:
    for path in ("jobs", "health", "/", "/page/main.js"):
        answer = client.get(path, headers={"Host": "evil.example.org"})
        assert answer.status_code == 421
        assert answer.json()["type"] == "urn:elastic:ForeignHost"
    allowed = {"Host": "evil.example.org", "Authorization": f"Bearer {SECRET}"}
    assert client.post("jobs/words/scale", json={"nodes": 6}, headers=allowed).status_code == 421


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_sites_may_not_ask(client: Client, site: str) -> None:
    asked = client.get("jobs", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"})
    assert asked.status_code == 403
    followed = client.get("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"})
    assert followed.status_code == 200
    assert client.get("jobs", headers={"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}).status_code == 200


def test_no_other_origin_is_let_in_by_cors(client: Client) -> None:
    headers = {"Origin": "http://evil.example.org", "Access-Control-Request-Method": "POST"}
    for answer in (client.options("jobs/words/scale", headers=headers), client.get("jobs", headers=headers)):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_large_body_is_not_read(client: Client) -> None:
    token = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
    answer = client.post("jobs/words/scale", content=b" " * 70_000, headers=token)
    assert answer.status_code == 413
    assert answer.json()["facts"] == {"limit": 65_536}
    endless = client.post("jobs/words/scale", content=iter([b" " * 10_000] * 8), headers=token)
    assert endless.status_code in (400, 413)


def test_every_answer_carries_the_policy(client: Client) -> None:
    answers = [client.get(path) for path in ("/", "jobs", "nothing", "/page/style.css")]
    answers += [client.post("jobs/words/scale"), client.get("jobs", headers={"Host": "evil.example.org"})]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.get("jobs").headers["cache-control"] == "no-store"


def test_what_nobody_expected_is_a_500_without_details(
    job: PaperJob, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("a secret of the program")

    monkeypatch.setattr(job, "assignment", broken)
    with Client(job) as careless:
        transport: Any = careless._transport
        transport.raise_server_exceptions = False
        answer = careless.get("jobs/words/assignment")
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


def test_the_door_is_the_outermost_layer(client: Client) -> None:
    assert [layer.cls for layer in client.app.user_middleware] == [Door]  # type: ignore[attr-defined]
