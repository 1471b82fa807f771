"""The probe finds a job healthy that is, and notices every way in which health and metrics can be untrue."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

import pytest

from tests.chaos.api_probe import find_untruth, wait_until_degraded
from tests.chaos.life import Life

METRICS = 'elastic_job_up{{job_name="chaos"}} {up}\nelastic_published_batch{{job_name="chaos"}} {published}\n'
OVERDUE = 'elastic_node_step_overdue{job_name="chaos",node="node-2"} 1.0\n'


class WatchedLife(Life):
    """A driver that has published so many batches, with an API somewhere."""

    def __init__(self, url: str, published: int) -> None:
        self.facts = {"serving": {"url": url}}
        self.status = {"published_batch": published}

    def wait_for_statuses(self, count: int, deadline: float) -> None:
        """This one says the same for ever."""

    def check(self) -> None:
        """This one never ends."""


@contextmanager
def api(health: tuple[int, str], metrics: Iterator[str]) -> Iterator[str]:
    """The URL of a server that reports this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_health = self.path == "/api/v1/health"
            body = json.dumps({"status": health[1], "problems": {"chaos": ["node-2 hangs"]}})
            self.send_response(health[0] if is_health else 200)
            self.end_headers()
            self.wfile.write((body if is_health else next(metrics)).encode())

        def log_message(self, *_: object) -> None:
            """Requests are not worth a line."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10.0)
        server.server_close()


def advancing(up: float = 1.0, step: int = 1) -> Iterator[str]:
    return (METRICS.format(up=up, published=float(number * step)) for number in count())


def test_a_healthy_job_that_advances_is_found_healthy() -> None:
    with api((200, "degraded"), advancing()) as url:
        assert find_untruth(WatchedLife(url, 9), 10.0) == []


@pytest.mark.parametrize(
    ("code", "status", "up", "step", "problem"),
    [
        (503, "failing", 1.0, 1, "health is 503"),
        (200, "failing", 1.0, 1, "health is 200"),
        (200, "ok", 0.0, 1, "elastic_job_up is 0.0"),
        (200, "ok", 1.0, 0, "elastic_published_batch stays at 0"),
        (200, "ok", 1.0, 100, "elastic_published_batch is 100, and the job has published 50"),
    ],
)
def test_a_wrong_report_is_noticed(code: int, status: str, up: float, step: int, problem: str) -> None:
    with api((code, status), advancing(up, step)) as url:
        (found,) = find_untruth(WatchedLife(url, 50), 0.3)
    assert problem in found


def test_an_api_that_does_not_answer_is_noticed() -> None:
    assert "health is 0" in find_untruth(WatchedLife("http://127.0.0.1:9", 1), 0.5)[0]


def test_a_hung_node_is_named_only_if_health_and_metrics_agree() -> None:
    with api((200, "degraded"), (text + OVERDUE for text in advancing())) as url:
        assert wait_until_degraded(WatchedLife(url, 9), 10.0) == "node-2"
    with api((200, "ok"), (text + OVERDUE for text in advancing())) as url:
        assert wait_until_degraded(WatchedLife(url, 9), 0.5) is None
    with api((200, "degraded"), advancing()) as url:
        assert wait_until_degraded(WatchedLife(url, 9), 0.5) is None
