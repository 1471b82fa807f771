"""Jobs with several inputs, and graphs of stages, in whole jobs: scaled, restarted, idle, standing still."""

import datetime as dt
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import elastic
from elastic.errors import IncompatibleRestart, InvalidJob
from elastic.job.job import Job
from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from elastic.operators import Aggregate, CountByKey, IntervalJoin, Side, Stage, WindowJoin, partial, stateless, window
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from storage import Secret
from tests.elastic.operators.test_several_inputs import at_end, diamond, three_windows, windows_of

SECRET = Secret.of("a secret of these tests")
FAST = {"heartbeat_seconds": 0.05}
TIME = pa.timestamp("us", "UTC")
PERSONS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("ts", TIME)])
AUCTIONS = pa.schema([("auction", pa.int64()), ("seller", pa.int64()), ("ts", TIME)])
WAIT_SECONDS = 30.0
Row = dict[str, Any]


def at(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ms / 1_000, dt.UTC)


def persons_of(batch: int) -> pa.Table:
    rows = [{"id": n, "name": f"p{n}", "ts": at(10 * n)} for n in range(10 * batch, 10 * batch + 10)]
    return pa.Table.from_pylist(rows, PERSONS)


ALL_AUCTIONS = pa.Table.from_pylist(
    [{"auction": n, "seller": n % 120, "ts": at(10 * (n % 120) + 5)} for n in range(1_200)], AUCTIONS
)
JOIN = WindowJoin(
    Side("persons", time="ts", columns=["name"]), Side("auctions", time="ts", columns=["auction"]), window("100 ms")
)


def inputs(persons: Any = None, auctions: Any = None, **options: Any) -> list[elastic.Input]:
    return [
        elastic.Input(persons, name="persons", key="id", event_time="ts", schema=PERSONS),
        elastic.Input(auctions, name="auctions", key="seller", event_time="ts", schema=AUCTIONS, **options),
    ]


def run(given: Any, operator: Any, **options: Any) -> Job:
    return local_run(given, operator=operator, **{"secret": SECRET, "settings": FAST, "tasks": 6, **options})


def wait_for(job: Job, rows: int) -> list[Row]:
    """Wait until that many results are published, and return them."""
    deadline = time.monotonic() + WAIT_SECONDS
    while len(found := job.collected().to_pylist()) < rows:
        assert time.monotonic() < deadline, f"{len(found)} of {rows} results were published"
        time.sleep(0.02)
    return list(found)


def test_a_join_at_twelve_to_one_loses_nothing_while_nodes_come_and_go() -> None:
    persons = TableSource(LocalNetwork())
    with run(inputs(persons, [ALL_AUCTIONS]), Stage(JOIN, key="person")) as job:
        for batch in range(12):
            persons.append(persons_of(batch))
            job.process_all_available()
            if batch == 4:
                job.scale(4).wait()
            if batch == 8:
                job.scale(1).wait()
        found = Counter((row["person"], row["name"], row["auction"]) for row in job.collected().to_pylist())
    assert found == Counter((n % 120, f"p{n % 120}", n) for n in range(1_200))


def test_a_mapping_of_tables_is_enough() -> None:
    count = Stage(CountByKey(), key="id", inputs={"people": "id", "auctions": "seller"})
    with run({"people": [persons_of(0)], "auctions": [ALL_AUCTIONS.slice(0, 5)]}, count) as job:
        job.process_all_available()
        assert [job.state(n) for n in (0, 4, 5, 9, 10)] == [2, 2, 1, 1, 0]


def test_a_restarted_job_keeps_the_watermarks_of_its_inputs(tmp_path: Path) -> None:
    url = tmp_path.as_uri()
    batches: list[Any] = [{"auctions": ALL_AUCTIONS}, {"persons": persons_of(0)}]
    source = TableSource(LocalNetwork(), batches)
    options: dict[str, Any] = {"inputs": inputs(), "store": url, "name": "sales", "key": "person"}
    with run(source, JOIN, **options) as job:
        job.process_all_available()
        before = job._driver.view.latest_time
        assert len(job.collected()) == 100
    for batch in range(1, 12):
        source.append({"persons": persons_of(batch)})
    with run(source, JOIN, **options) as job:
        after = job._driver.view.latest_time
        job.process_all_available()
        found = len(job.collected())
    assert before is not None
    assert after == before
    assert [each.watermarks[0] for each in before.inputs] == [1_195, 90]
    assert found == 1_200


def test_a_job_with_other_edges_or_inputs_is_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"store": tmp_path.as_uri(), "name": "sales", "key": "person"}
    stages = [Stage(JOIN, name="join"), Stage(CountByKey(), name="count", inputs=["join"])]
    run(TableSource(LocalNetwork()), stages, inputs=inputs(), **options).stop()
    other = [stages[0], Stage(CountByKey(), name="count", inputs={"join": "person", "persons": "id"})]
    with pytest.raises(IncompatibleRestart, match=r"graph"):
        run(TableSource(LocalNetwork()), other, inputs=inputs(), **options)
    fewer = [Stage(stateless(lambda rows: rows, "auction long, person long"), name="join"), stages[1]]
    with pytest.raises(IncompatibleRestart, match=r"event time"):
        run(TableSource(LocalNetwork()), fewer, inputs=inputs()[1:], **options)


def test_an_exported_job_continues_with_its_inputs_and_their_watermarks(tmp_path: Path) -> None:
    url, name = (tmp_path / "store").as_uri(), "sales"
    stage = Stage(CountByKey(), name="count", inputs={"persons": "id", "auctions": "seller"}, key="person")
    first = {"auctions": ALL_AUCTIONS, "persons": persons_of(0)}
    with run(TableSource(LocalNetwork(), [first]), stage, inputs=inputs(), store=url, name=name) as job:
        job.process_all_available()
    elastic.export_state(store=url, name=name, directory=str(tmp_path / "export"), secret=SECRET.reveal().decode())
    elastic.import_state(
        store=url, name="again", directory=str(tmp_path / "export"), tasks=9, secret=SECRET.reveal().decode()
    )
    source = TableSource(LocalNetwork(), [{"persons": persons_of(0)}])
    with run(source, stage, inputs=inputs(), store=url, name="again", tasks=9) as job:
        before = job._driver.view.latest_time
        job.process_all_available()
        assert [job.state(n) for n in (5, 50)] == [12, 10]
    assert before is not None
    assert [each.watermarks[0] for each in before.inputs] == [1_195, 90]


def test_an_input_that_falls_idle_lets_time_pass_without_a_row() -> None:
    persons = TableSource(LocalNetwork(), [persons_of(0)])
    auctions = TableSource(LocalNetwork(), [ALL_AUCTIONS.slice(0, 1)])
    windows = Aggregate(n=F.count()).over(window("20 ms"), time="ts")
    count = Stage(windows, key="person", name="count")
    with run(inputs(persons, auctions, idle_after="300 ms"), count) as job:
        job.process_all_available()
        assert len(job.collected()) == 0  # the auctions are at 5 ms
        found = wait_for(job, 8)  # until the persons' 90 ms
    assert sorted(row["window"]["start"].timestamp() for row in found) == [0, 0, 0.02, 0.02, 0.04, 0.04, 0.06, 0.06]


def test_stages_that_lag_behind_are_drained_on_a_quiet_stream() -> None:
    rows = [{"key": n % 3, "t": n, "n": n} for n in range(500)]
    schema = pa.schema([("key", pa.int64()), ("t", pa.int64()), ("n", pa.int64())])
    batches = [pa.Table.from_pylist(rows[n : n + 50], schema) for n in range(0, 500, 50)]
    expected = {key: found for key, found in windows_of(rows).items() if key[1] + 120 + 50 < 500}  # sizes delay too
    end = pa.Table.from_pylist([{"key": 0, "t": 500, "n": 0}], schema)

    with run([*batches, end], three_windows(at_end), key="key", event_time="t") as job:
        found = wait_for(job, len(expected))
        time.sleep(0.3)
        ticks = job.batches()[0] - 10
        assert len(job.collected()) == len(expected)
    assert {(row["key"], row["window"]["start"]): (row["n"], row["windows"]) for row in found} == expected
    assert ticks <= 3


def test_processing_time_passes_in_a_job_with_several_inputs() -> None:
    count = Stage(Aggregate(n=F.count()).over(window("200 ms")), key="person")
    with run(inputs([persons_of(0)], [ALL_AUCTIONS.slice(0, 10)]), count) as job:
        assert sum(row["n"] for row in wait_for(job, 10)) == 20


def test_a_diamond_of_stages_survives_the_loss_of_nodes() -> None:
    schema = pa.schema([("key", pa.int64()), ("t", pa.int64()), ("n", pa.int64())])
    rows = [{"key": n % 7, "t": n, "n": n} for n in range(1_000)]
    source = TableSource(LocalNetwork())
    with run(source, diamond(), key="key", event_time="t", schema=schema) as job:
        for batch in range(10):
            source.append(pa.Table.from_pylist(rows[100 * batch : 100 * batch + 100], schema))
            if batch in (3, 6):
                job._driver.replace_node("node-1", "a test says so")
        source.append(pa.Table.from_pylist([{"key": 0, "t": 2_000, "n": 0}], schema))
        found = wait_for(job, 700)
    expected = Counter((row["key"], row["t"] // 10) for row in rows)
    assert {(row["key"], row["at"] // 10): row["count"] for row in found} == expected
    assert sum(row["sum"] for row in found) == sum(row["n"] for row in rows)


def test_partial_and_shuffled_stages_read_inputs_too() -> None:
    names = stateless(lambda rows: rows.select(["id", "name"]), "id long, name string")
    stages = [
        Stage(names, name="names", key="id", grouping="shuffle", inputs=["persons"]),
        *partial(Stage(CountByKey(), name="sellers", key="seller", inputs=["auctions"])),
        Stage(CountByKey(), name="both", inputs={"names": "id", "auctions": "seller"}, key="person"),
    ]
    with run(inputs([persons_of(0), persons_of(1)], [ALL_AUCTIONS]), stages) as job:
        job.process_all_available()
        assert [job.state(n, stage="sellers") for n in (0, 119)] == [10, 10]
        assert job.state(7, stage="sellers", fresh=True) == 10
        assert [job.state(n, stage="both") for n in (5, 15, 25)] == [11, 11, 10]


def test_the_graph_of_a_job_is_part_of_its_handle() -> None:
    stages = [Stage(JOIN, key="person", name="join"), Stage(CountByKey(), key="name", name="count")]
    with run(inputs([persons_of(0)], [ALL_AUCTIONS]), stages) as job:
        assert job.graph().edges == (("auctions", "join"), ("persons", "join"), ("join", "count"))
        assert "<svg" in job._repr_html_()


def test_batches_name_inputs_that_the_job_has() -> None:
    source = TableSource(LocalNetwork(), [{"bids": persons_of(0)}])
    expected = pytest.raises(InvalidJob, match=r"input 'bids'. Name one of 'auctions', 'persons'")
    with run(source, JOIN, inputs=inputs(), key="person") as job, expected:
        job.process_all_available()


def test_rows_without_a_key_are_dropped_by_the_stages_that_need_it() -> None:
    rows = pa.Table.from_pylist(
        [{"auction": 1, "seller": None, "ts": at(0)}, {"auction": None, "seller": 2, "ts": at(0)}], AUCTIONS
    )
    stages = [
        Stage(CountByKey(), key="auction", name="auctions seen", inputs=["auctions"]),
        Stage(CountByKey(), key="seller", name="sellers seen", inputs=["auctions"]),
        Stage(CountByKey(), key="id", name="persons seen", inputs=["persons"]),
    ]
    settings = {**FAST, "null_keys": "drop"}
    with run(inputs([persons_of(0)], [rows]), stages, settings=settings) as job:
        job.process_all_available()
        assert job.state(1, stage="auctions seen") == 1
        assert job.state(2, stage="sellers seen") == 1
        assert job.state(None, stage="sellers seen") == 0
        assert job.status().rows == 12


def test_an_interval_join_of_inputs_with_columns_of_other_names() -> None:
    clicks = pa.table({"id": [1, 1], "when": [5, 50], "n": [1, 2]})
    ads = pa.table({"id": [1], "when": [0], "n": [9]})
    join = IntervalJoin(
        Side("ads", time="shown", columns=["ad"]), Side("clicks", time="clicked", columns=["click"]), upper="10 ms"
    )
    given = [
        elastic.Input([ads], name="ads", columns={"id": "id", "shown": "when", "ad": "n"}, event_time="shown"),
        elastic.Input([clicks], name="clicks", columns={"id": "id", "clicked": "when", "click": "n"}),
    ]
    with run(given, join, key="id") as job:
        job.process_all_available()
        assert [(row["ad"], row["click"]) for row in job.collected().to_pylist()] == [(9, 1)]
