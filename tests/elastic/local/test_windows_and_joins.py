"""Windows and joins in whole jobs: the real driver and nodes, scaled in the middle, in threads of this process."""

import datetime as dt
from collections import Counter
from typing import Any

import pyarrow as pa

from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from elastic.operators import Aggregate, IntervalJoin, Side, Stage, window, with_late_rows
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from storage import Secret

SECRET = Secret.of("a secret of these tests")
BATCHES, ROWS, USERS = 12, 50, 7
TIME = pa.timestamp("us", "UTC")
TAGGED = pa.schema([("user", pa.string()), ("input", pa.string()), ("ts", TIME), ("n", pa.int64())])

Row = dict[str, Any]


def at(second: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(second, dt.UTC)


def rows_of(batch: int) -> list[Row]:
    """Return rows of one second, a third of them half a second behind."""
    return [
        {
            "user": f"u{number % USERS}",
            "input": "clicks" if number % 5 else "ads",
            "ts": at(100 + number / ROWS - (0.5 if number % 3 == 0 else 0)),
            "n": number,
        }
        for number in range(batch * ROWS, (batch + 1) * ROWS)
    ]


def run_scaled(operator: Any, batches: list[list[Row]]) -> list[Row]:
    """Run a job with other nodes for the second half of its batches; return the results."""
    source = TableSource(LocalNetwork())
    options: Any = {"event_time": "ts", "watermark_delay_ms": 600, "secret": SECRET, "sink": "memory"}
    with local_run(source, key="user", operator=operator, schema=TAGGED, **options) as job:
        for number, batch in enumerate(batches):
            if number == len(batches) // 2:
                job.process_all_available()
                job.scale(4).wait()
            source.append(pa.Table.from_pylist(batch, TAGGED))
        job.process_all_available()
        return list(job.collected().to_pylist())


def test_windows_of_a_scaled_job_are_those_of_a_batch_computation() -> None:
    batches = [rows_of(batch) for batch in range(BATCHES)]
    aggregates = Aggregate(n=F.count(), total=F.sum("n"), different=F.approx_count_distinct("n", 0.02))
    windows = aggregates.over(window("2 seconds"), time="ts", late="sink")
    last = {"user": "last", "input": "ads", "ts": at(9_000), "n": 0}
    too_late = {"user": "late", "input": "ads", "ts": at(1), "n": 0}
    pipeline = [Stage(each.operator, name=each.name, grouping="table") for each in with_late_rows(windows)]
    emitted = run_scaled(pipeline, [*batches, [last], [too_late]])
    expected: dict[Any, list[int]] = {}
    for row in (row for batch in batches for row in batch):
        expected.setdefault((row["user"], at(row["ts"].timestamp() // 2 * 2)), []).append(row["n"])
    assert len(emitted) == len(expected)
    assert {(row["user"], row["window"]["start"]): (row["n"], row["total"]) for row in emitted} == {
        key: (len(numbers), sum(numbers)) for key, numbers in expected.items()
    }
    assert all(abs(row["different"] - row["n"]) <= 1 for row in emitted)  # numbers differ; the count is approximate


def test_a_join_in_a_scaled_job_has_the_rows_of_a_batch_join() -> None:
    batches = [rows_of(batch) for batch in range(BATCHES)]
    join = IntervalJoin(
        Side("ads", time="ts", columns={"ad": "n"}), Side("clicks", time="ts", columns={"click": "n"}), upper="1 second"
    )
    emitted = Counter((row["user"], row["ad"], row["click"]) for row in run_scaled(join, batches))
    rows = [row for batch in batches for row in batch]
    expected = Counter(
        (ad["user"], ad["n"], click["n"])
        for ad in rows
        for click in rows
        if (ad["input"], click["input"], ad["user"]) == ("ads", "clicks", click["user"])
        and ad["ts"] <= click["ts"] <= ad["ts"] + dt.timedelta(seconds=1)
    )
    assert emitted == expected
    assert len(expected) > BATCHES
