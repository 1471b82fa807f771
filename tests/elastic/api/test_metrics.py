"""What Prometheus is told, read back by its own parser."""

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from elastic.api.metrics import METRICS
from tests.elastic.api.conftest import Client
from tests.elastic.api.paper_job import PaperJob

DOCUMENT = Path(__file__).parents[3] / "docs" / "operations.md"


def scraped(client: Client) -> dict[str, dict[tuple[str, ...], float]]:
    answer = client.get("metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(answer.text)
    }


def test_all_metrics_of_all_jobs_are_told() -> None:
    odd = 'odd "name" \\ here'
    with Client(PaperJob("words"), PaperJob(odd, nodes=2)) as client:
        found = scraped(client)
    assert set(found) == {metric.name.removesuffix("_total") for metric in METRICS}
    assert found["elastic_job_up"] == {("words",): 1.0, (odd,): 1.0}
    assert found["elastic_nodes"] == {("words",): 4.0, (odd,): 2.0}
    assert found["elastic_node_tasks"]["words", "node-3"] == 4.0
    assert found["elastic_migrations"]["words", "done"] == 0.0


def test_a_migration_is_told_while_it_is_under_way_and_counted_when_it_is_over() -> None:
    job = PaperJob()
    with Client(job) as client:
        job.cluster.go.clear()
        client.change("jobs/words/scale", nodes=6, relax=True)
        client.board.find("words").look()
        found = scraped(client)
        assert found["elastic_migration_running"] == {("words",): 1.0}
        assert found["elastic_migration_bytes"]["words",] > 0
        job.cluster.go.set()
        assert job.migration is not None
        assert job.migration.wait(10)
        client.board.find("words").look()
        found = scraped(client)
        assert found["elastic_migration_running"] == {("words",): 0.0}
        assert found["elastic_migration_bytes"] == {}
        assert found["elastic_migrations"]["words", "done"] == 1.0


def test_the_table_in_the_documentation_is_the_table_in_the_code() -> None:
    rows = re.findall(r"^\| `(elastic_\w+)` \| (\w+) \| (.+?) \| (.+?) \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert rows == [(metric.name, metric.kind, metric.unit, metric.help) for metric in METRICS]
