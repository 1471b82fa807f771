"""A sender without Spark: what it reports of the rows of one source partition."""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from elastic.ingest.batch_spec import BatchSpec, InputPlan, StageFeed
from elastic.routing import Routing
from elastic.settings import Settings
from elastic.spark.sender import send
from elastic.store_access import StoreAccess
from migration import Assignment


def report(*tables: pa.Table) -> Any:
    """Return the latest event time that the sender reports, in milliseconds."""
    orders = BatchSpec(
        "job",
        0,
        Routing.by_hash(Assignment.even(8, 2)),
        {},
        "token",
        StoreAccess("memory:", secret_bytes=b"a secret for tests only, of 32 bytes"),
        Settings(chunk_bytes=1),  # every batch is a chunk of its own
        (InputPlan("input", "ts", (StageFeed(0, ("key",)),)),),
    )
    (status,) = list(send(orders, iter([batch for table in tables for batch in table.to_batches()])))
    [[number, latest_ms]] = json.loads(status["status"][0].as_py())["seen"]
    assert number == 0
    return latest_ms


def rows(*times: datetime | None) -> pa.Table:
    return pa.table({"key": list(range(len(times))), "ts": pa.array(times, pa.timestamp("us", "UTC"))})


MOON = datetime(1969, 7, 20, 20, 17, 40, tzinfo=UTC)


@pytest.mark.parametrize(
    ("tables", "latest"),
    [
        ([rows(MOON)], MOON),
        ([rows(datetime(1968, 1, 1, tzinfo=UTC)), rows(MOON)], MOON),
        ([rows(MOON, None)], MOON),
        ([rows(MOON), rows(datetime(1970, 1, 1, tzinfo=UTC))], datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_the_latest_event_time_may_be_before_1970(tables: list[pa.Table], latest: datetime) -> None:
    assert report(*tables) == latest.timestamp() * 1_000


def test_times_before_1970_are_rounded_down() -> None:
    assert report(rows(datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC))) == -1


def test_rows_without_an_event_time_tell_nothing() -> None:
    assert report(rows(None, None)) is None
