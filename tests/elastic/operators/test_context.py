"""The context of an operator is the same in a replay."""

from datetime import UTC, date, datetime

import pandas as pd
import pyarrow as pa
import pytest

from elastic.errors import InvalidJob
from elastic.operators.context import Context, Moment
from elastic.operators.event_times import to_milliseconds
from storage.state import UnitId


def context(task: int = 3, batch: int = 1, round_: int = 0, watermark: int | None = None) -> Context:
    return Context(Moment(UnitId(0, task), batch, round_, 5_000, watermark, None))


def test_random_numbers_depend_on_unit_batch_and_round_only() -> None:
    drawn = [context(*place).random.integers(0, 2**60) for place in ((3, 1), (3, 1), (4, 1), (3, 2), (3, 1, 1))]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 4


@pytest.mark.parametrize(
    "times",
    [
        pa.array([999, 1_000, 1_001, None], pa.int64()),
        pa.array([999, 1_000, 1_001, None], pa.timestamp("ms")),
        pa.array([999_999, 1_000_000, 1_000_001, None], pa.timestamp("us", "UTC")),
        pa.array([999_999_999, 1_000_000_000, 1_000_000_001, None], pa.timestamp("ns")),
        pa.array([0, 1, 2, None], pa.timestamp("s")),
    ],
    ids=str,
)
def test_rows_at_or_before_the_watermark_are_late(times: pa.Array) -> None:
    rows = pa.table({"t": pa.chunked_array([times[:2], times[2:]])})
    assert context(watermark=1_000).late(rows, "t").to_pylist() == [True, True, False, False]
    assert rows.filter(context(watermark=1_000).late(rows, "t")).num_rows == 2
    assert context().late(rows, "t").to_pylist() == [False] * 4
    assert context(watermark=1_000).late(rows.to_pandas(), "t").tolist() == [True, True, False, False]


def test_late_works_on_dicts_and_dates() -> None:
    moment = datetime(2020, 1, 2, tzinfo=UTC)
    rows = [{"t": moment}, {"t": None}]
    assert context(watermark=int(moment.timestamp() * 1_000)).late(rows, "t") == [True, False]
    days = [{"t": date(1970, 1, 1)}, {"t": date(1970, 1, 2)}]
    assert context(watermark=86_399_999).late(days, "t") == [True, False]
    assert pd.Series(context(watermark=0).late(pd.DataFrame({"t": [0, 1]}), "t")).tolist() == [True, False]


def test_milliseconds_are_rounded_down() -> None:
    assert to_milliseconds(pa.array([-1, 1_999, None], pa.timestamp("us"))).to_pylist() == [-1, 1, None]
    assert to_milliseconds(pa.array([2], pa.timestamp("s"))).to_pylist() == [2_000]


def test_unknown_timer_kinds_are_refused() -> None:
    with pytest.raises(InvalidJob, match="unknown timer kind 'evnt'"):
        context().set_timer(1, "evnt")  # type: ignore[arg-type]
