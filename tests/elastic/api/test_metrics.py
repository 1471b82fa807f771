"""The metrics, read by Prometheus' own parsers."""

import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from elastic.api.metrics import METRICS, create_response_histogram
from tests.elastic.api.conftest import Client
from tests.elastic.api.paper_job import PaperJob

DOCUMENT = Path(__file__).parents[3] / "docs" / "operations.md"
HISTOGRAM = next(iter(create_response_histogram().describe()))
TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def scrape(client: Client) -> dict[str, dict[tuple[str, ...], float]]:
    answer = client.get("metrics")
    assert answer.headers["content-type"] == TEXT_TYPE
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in parse_text(answer.text)
    }


def scrape_histogram(client: Client, job: str = "words") -> dict[str, float]:
    """Return the count, the sum, and the cumulative counts by upper bound."""
    [family] = [family for family in parse_text(client.get("metrics").text) if family.name == HISTOGRAM.name]
    samples = [sample for sample in family.samples if sample.labels["job_name"] == job]
    return {sample.labels.get("le", sample.name.rpartition("_")[2]): sample.value for sample in samples}


def test_the_metrics_of_all_jobs_are_exposed() -> None:
    odd = 'odd "name" \\ here'
    with Client(PaperJob("words"), PaperJob(odd, nodes=2)) as client:
        found = scrape(client)
    assert set(found) == {metric.name.removesuffix("_total") for metric in METRICS} | {HISTOGRAM.name}
    assert found["elastic_job_up"] == {("words",): 1.0, (odd,): 1.0}
    assert found["elastic_nodes"] == {("words",): 4.0, (odd,): 2.0}
    assert found["elastic_node_tasks"]["words", "node-3"] == 4.0
    assert found["elastic_migrations"]["words", "done"] == 0.0


def test_a_migration_has_gauges_while_it_is_in_progress_and_is_counted_when_it_has_ended() -> None:
    job = PaperJob()
    with Client(job) as client:
        job.cluster.go.clear()
        client.change("jobs/words/scale", nodes=6, relax=True)
        client.registry.find("words").poll()
        found = scrape(client)
        assert found["elastic_migration_running"] == {("words",): 1.0}
        assert found["elastic_migration_bytes"]["words",] > 0
        job.cluster.go.set()
        assert job.migration is not None
        assert job.migration.wait(10)
        client.registry.find("words").poll()
        found = scrape(client)
        assert found["elastic_migration_running"] == {("words",): 0.0}
        assert found["elastic_migration_bytes"] == {}
        assert found["elastic_migrations"]["words", "done"] == 1.0


def test_every_published_batch_is_one_observation_of_the_response_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    job = PaperJob()
    monkeypatch.setattr(job, "batches", lambda: (0, 0))
    with Client(job, PaperJob("clicks")) as client:
        assert scrape_histogram(client)["count"] == 0
        lag, now = client.registry.find("words")._lag, time.monotonic()
        for at, committed, published in ((1.0, 1, 0), (1.25, 2, 0), (1.5, 2, 1), (4.25, 2, 2), (9.0, 2, 2)):
            lag.update(now + at, committed, published)  # batch 1 takes 0.5 s, batch 2 takes 3 s
        found = scrape_histogram(client)
        assert found["count"] == 2
        assert found["sum"] == pytest.approx(3.5)
        assert (found["0.35"], found["0.75"], found["2.0"], found["5.0"], found["+Inf"]) == (0, 1, 1, 2, 2)
        assert scrape_histogram(client) == found  # a scrape observes nothing
        lag.update(now + 10.0, 3, 3)
        assert scrape_histogram(client)["count"] == 3  # cumulative, whatever was scraped before
        assert scrape_histogram(client, "clicks")["count"] == 0


def test_a_watcher_observes_the_batches_of_its_job(client: Client) -> None:
    watcher = client.registry.find("words")
    watcher.start()
    deadline = time.monotonic() + 10
    while scrape_histogram(client)["count"] < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    watcher.stop()
    observed = scrape_histogram(client)["count"]
    assert observed >= 2
    assert watcher.poll().published_batch >= observed - 1  # the snapshot before may be older than the observations


def test_the_response_histogram_counts_observations_of_several_threads() -> None:
    histogram = create_response_histogram()

    def observe() -> None:
        for _ in range(1_000):
            histogram.labels("words").observe(0.1)

    threads = [threading.Thread(target=observe) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [family] = histogram.collect()
    assert next(sample.value for sample in family.samples if sample.name.endswith("_count")) == 4_000


def test_a_client_that_accepts_openmetrics_gets_it(client: Client) -> None:
    answer = client.get("metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    families: Any = openmetrics.text_string_to_metric_families(answer.text)  # type: ignore[no-untyped-call]
    names = {family.name for family in families}
    assert names == {metric.name.removesuffix("_total") for metric in METRICS} | {HISTOGRAM.name}


@pytest.mark.parametrize(
    "accept", ["", "*/*", "text/html", "application/openmetrics-text; version=one", "text/plain;version=1.x"]
)
def test_any_other_client_gets_the_text_format(client: Client, accept: str) -> None:
    answer = client.get("metrics", headers={"Accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == TEXT_TYPE


def test_names_and_descriptions_follow_the_conventions_of_prometheus() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"elastic(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert re.fullmatch(r"[A-Z].*\.", metric.description)


def test_the_global_registry_of_prometheus_stays_untouched(client: Client) -> None:
    client.get("metrics")
    assert not [family.name for family in REGISTRY.collect() if family.name.startswith("elastic")]


def test_the_table_in_the_documentation_lists_all_metrics() -> None:
    rows = re.findall(r"^\| `(elastic_\w+)` \| (\w+) \| ([^|]*) \| (.+?) \|$", DOCUMENT.read_text(), re.MULTILINE)
    expected = [(metric.name, metric.kind, ", ".join(metric.labels), metric.description) for metric in METRICS]
    assert rows == [*expected, (HISTOGRAM.name, HISTOGRAM.type, "", HISTOGRAM.documentation)]
