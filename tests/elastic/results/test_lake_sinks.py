"""Delta Lake and Iceberg: commits that race, other writers, added columns, and tables that several jobs share."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from elastic.results import DeltaSink, IcebergSink
from elastic.results.errors import SinkUnavailable
from elastic.results.objects import ORIGIN
from tests.elastic.results.targets import RESULTS, Target, batch_rows, delta_target, iceberg_target, values_of

_TARGETS = {"delta": delta_target, "iceberg": iceberg_target}


@pytest.fixture(params=_TARGETS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    return _TARGETS[request.param](tmp_path / "target")


def open_on(target: Target, results: str = RESULTS) -> Any:
    sink = target.open_sink()
    assert isinstance(sink, DeltaSink | IcebergSink)
    sink.open(results)
    return sink


def test_of_two_commits_of_a_batch_that_began_at_the_same_time_one_fails(target: Target) -> None:
    earlier, later = open_on(target), open_on(target)
    later.deliver(0, batch_rows(0))
    earlier._refresh()
    later.deliver(1, batch_rows(1))
    with pytest.raises(SinkUnavailable):
        earlier._commit(1, batch_rows(1))
    assert target.read() == values_of(2)


def test_a_mark_for_batches_without_rows_does_not_move_the_position_back(target: Target) -> None:
    earlier, later = open_on(target), open_on(target)
    later.deliver(0, batch_rows(0))
    earlier._refresh()
    for batch in (1, 2):
        later.deliver(batch, batch_rows(batch))
    with pytest.raises(SinkUnavailable):
        earlier._commit(1, ORIGIN.empty_table())
    assert target.open_sink().open(RESULTS) == 3


def test_a_table_that_two_jobs_share_has_the_rows_of_both(target: Target) -> None:
    with closing(open_on(target)) as one, closing(open_on(target, "those")) as other:
        for batch in range(2):
            one.deliver(batch, batch_rows(batch))
            other.deliver(batch, batch_rows(batch))
    assert target.read() == sorted(2 * values_of(2))


def test_columns_that_later_results_have_are_added(target: Target) -> None:
    with closing(open_on(target)) as sink:
        sink.deliver(0, batch_rows(0))
        sink.deliver(1, batch_rows(1).append_column("more", pa.array(["x"] * len(batch_rows(1)))))
        sink.deliver(2, batch_rows(2))
    assert target.read() == values_of(3)


def test_a_job_without_rows_makes_no_table(target: Target) -> None:
    with closing(open_on(target)) as sink:
        for batch in range(250):
            sink.deliver(batch, ORIGIN.empty_table())
    assert target.open_sink().open(RESULTS) is None


def test_a_snapshot_of_iceberg_names_its_batch(tmp_path: Path) -> None:
    sink = open_on(iceberg_target(tmp_path / "target"))
    for batch in range(2):
        sink.deliver(batch, batch_rows(batch))
    sink._refresh()
    summaries = [snapshot.summary for snapshot in sink._table.metadata.snapshots]
    assert [(summary["elastic.results"], summary["elastic.batch"]) for summary in summaries] == [
        (RESULTS, "0"),
        (RESULTS, "1"),
    ]


def test_a_table_whose_columns_have_other_types_is_an_error_and_not_retried(target: Target) -> None:
    with closing(open_on(target)) as sink:
        sink.deliver(0, batch_rows(0))
        with pytest.raises(Exception) as refused:
            sink.deliver(1, pa.table({"n": ["text"]}))
        assert not isinstance(refused.value, SinkUnavailable)
    assert target.read() == values_of(1)
