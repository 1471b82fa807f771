"""Several inputs on Spark: one query over their union, whatever their columns, rates and partitions."""

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import elastic
from elastic.errors import IncompatibleRestart, InvalidJob, SchemasDoNotFit, UnknownColumn
from elastic.operators import CountByKey, Side, Stage, WindowJoin, stateless, window
from elastic.results import MemorySink
from tests.spark.jobs import Feed

pytestmark = pytest.mark.spark

JOIN = WindowJoin(
    Side("persons", time="ts", columns=["name"]),
    Side("auctions", time="ts", columns=["auction", "price"]),
    window("100 ms"),
)


def at(ms: int) -> str:
    return dt.datetime.fromtimestamp(1_700_000_000 + ms / 1_000, dt.UTC).isoformat()


@pytest.fixture
def feeds(spark: SparkSession, tmp_path: Path) -> dict[str, Feed]:
    return {name: Feed(spark, tmp_path / name) for name in ("persons", "auctions")}


def inputs(feeds: dict[str, Feed]) -> list[elastic.Input]:
    """`id` and `name` have other meanings, and `name` another type, in auctions; columns are renamed by the job."""
    persons = feeds["persons"].frame("id long, name string, ts timestamp")
    # As if it came from a stream with keys: the union must not join partitions of both inputs.
    auctions = feeds["auctions"].frame("id long, seller long, name long, ts timestamp").repartition(2, "seller")
    columns = {"auction": "id", "seller": "seller", "price": "name", "ts": "ts"}
    return [
        elastic.Input(persons.repartition(2, "id"), name="persons", key="id", event_time="ts"),
        elastic.Input(auctions, name="auctions", key="seller", event_time="ts", columns=columns),
    ]


def run(feeds: dict[str, Feed], tmp_path: Path, operator: Any, **options: Any) -> elastic.SparkJob:
    given: dict[str, Any] = {"name": "sales", "store": tmp_path.as_uri(), "nodes": 2, "tasks": 6, "sink": "memory"}
    return elastic.run(inputs(feeds), operator=operator, **{**given, **options})


def test_a_join_at_twelve_to_one_loses_nothing_while_the_job_scales_and_restarts(
    feeds: dict[str, Feed], tmp_path: Path
) -> None:
    stages = [
        Stage(JOIN, key="person", name="join", grouping="table"),
        Stage(stateless(lambda rows: rows.select(["name"]), "name string"), name="names", inputs=["join"], key="name"),
        Stage(CountByKey(), key="name", name="per person", inputs=["names"]),
        Stage(CountByKey(), key="seller", name="per seller", inputs=["auctions"]),
    ]
    every = [{"id": n, "seller": n % 120, "name": 7 * n, "ts": at(10 * (n % 120) + 5)} for n in range(1_200)]
    feeds["auctions"].send(*every)
    persons = [{"id": n, "name": f"p{n}", "ts": at(10 * n)} for n in range(120)]
    sinks = {"per person": MemorySink(), "per seller": MemorySink()}
    with run(feeds, tmp_path, stages, sink=sinks) as job:
        for batch in range(6):
            feeds["persons"].send(*persons[10 * batch : 10 * batch + 10])
            job.process_all_available()
            if batch == 2:
                job.scale(3).wait()
        assert job.graph().followers("auctions") == ("join", "per seller")
        assert job.graph().sinks == dict.fromkeys(sinks, "memory")
    with run(feeds, tmp_path, stages, sink=sinks) as job:
        for batch in range(6, 12):
            feeds["persons"].send(*persons[10 * batch : 10 * batch + 10])
            job.process_all_available()
        assert Counter(job.state(n, stage="per seller") for n in range(120)) == {10: 120}
        assert Counter(job.state(f"p{n}", stage="per person") for n in range(120)) == {10: 120}
        assert job.status().rows == 60  # of this life
    for stage, sink in sinks.items():  # the last count of a key is its greatest
        rows = sink.table().to_pylist()
        key = "name" if stage == "per person" else "seller"
        assert Counter(max(r["count"] for r in rows if r[key] == one) for one in {r[key] for r in rows}) == {10: 120}
    other = [*stages[:3], Stage(CountByKey(), key="seller", name="per seller", inputs={"persons": "id"})]
    with pytest.raises(IncompatibleRestart, match=r"graph"):
        run(feeds, tmp_path, other)


def test_inputs_that_do_not_fit_are_refused_before_anything_starts(feeds: dict[str, Feed], tmp_path: Path) -> None:
    persons = feeds["persons"].frame("id long, name string")
    auctions = feeds["auctions"].frame("id long, name long")
    options: dict[str, Any] = {"name": "refused", "store": tmp_path.as_uri(), "nodes": 2}
    with pytest.raises(SchemasDoNotFit, match=r"'name' has type int64 in 'auctions' and string in 'persons'"):
        elastic.run({"persons": persons, "auctions": auctions}, key="id", operator=CountByKey(), **options)
    given = elastic.Input(persons, name="persons", columns=["at"])
    with pytest.raises(UnknownColumn, match=r"'at'"):
        elastic.run([given], key="id", operator=CountByKey(), **options)
    with pytest.raises(InvalidJob, match=r"Give each of them its own"):
        elastic.run({"persons": persons}, key="id", operator=CountByKey(), event_time="ts", **options)
