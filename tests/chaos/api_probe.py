"""Whether the API of a driver tells the truth about its job: health and metrics against what the driver itself says."""

import json
import re
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import Any

from tests.chaos.life import Life

_REQUEST_SECONDS = 10.0
_POLL_SECONDS = 0.2
_SAMPLE = re.compile(r'^(\w+)\{(?:.*?node="([^"]*)")?[^}]*\} (\S+)$')
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback only

Metrics = dict[tuple[str, str], float]  # by metric and node; the node of a job's own metric is empty


def read_health(life: Life) -> tuple[int, dict[str, Any]]:
    code, body = _get(life, "health")
    return code, json.loads(body) if body else {}


def read_metrics(life: Life) -> Metrics:
    return parse_metrics(_get(life, "metrics")[1])


def parse_metrics(text: str) -> Metrics:
    samples = [_SAMPLE.match(line) for line in text.splitlines() if not line.startswith("#")]
    return {(one[1], one[2] or ""): float(one[3]) for one in samples if one is not None}


def find_untruth(life: Life, seconds: float) -> list[str]:
    """Wait until the API calls the job healthy and shows that it advances; what it says instead after that time.

    A published batch that the job has not reached is wrong at once.
    """
    deadline, wrong = time.monotonic() + seconds, "nothing: it was not asked"
    first: float | None = None  # the published batch of the first answer
    while time.monotonic() < deadline:
        (code, health), metrics = read_health(life), read_metrics(life)
        life.wait_for_statuses(2, deadline)  # the first of them may be older than the answer
        published = metrics.get(("elastic_published_batch", ""), -1.0)
        if published > life.published_batch:
            return [f"elastic_published_batch is {published:g}, and the job has published {life.published_batch}"]
        first = published if first is None else first
        failure = _find_failure(code, health, metrics)
        if not failure and published > first:
            return []
        wrong = failure or f"elastic_published_batch stays at {published:g}"
        time.sleep(_POLL_SECONDS)
    return [f"the API says for {seconds:g} s: {wrong}"]


def wait_until_degraded(life: Life, seconds: float) -> str | None:
    """The node whose step is overdue according to health and metrics; None if the API does not say so in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        life.check()
        (code, health), metrics = read_health(life), read_metrics(life)
        overdue = [node for (name, node), value in metrics.items() if name == "elastic_node_step_overdue" and value]
        problems = str(health.get("problems"))
        if code == HTTPStatus.OK and health["status"] == "degraded" and overdue and overdue[0] in problems:
            return overdue[0]
        time.sleep(_POLL_SECONDS)
    return None


def _find_failure(code: int, health: dict[str, Any], metrics: Metrics) -> str:
    """What says that the job is not well; empty if nothing does."""
    if code != HTTPStatus.OK or health["status"] == "failing":
        return f"health is {code} {health}"
    up = metrics.get(("elastic_job_up", ""))
    return "" if up == 1.0 else f"elastic_job_up is {up}"


def _get(life: Life, what: str) -> tuple[int, str]:
    """Status and body; 0 and nothing if the server does not answer."""
    try:
        with _OPENER.open(f"{life.api_url}/api/v1/{what}", timeout=_REQUEST_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()
    except OSError:
        return 0, ""
