"""What every sink that survives its process must do: hold each batch once, whatever is repeated, killed or raced."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from elastic.results import Sink
from scripts.kafka_broker import KafkaBroker
from tests.elastic.results.targets import (
    BATCHES,
    QUIET,
    RESULTS,
    ROWS,
    Target,
    batch_rows,
    deliver_all,
    delta_target,
    iceberg_target,
    kafka_target,
    parquet_target,
    values_of,
)

_FOLDERS = {"parquet": parquet_target, "delta": delta_target, "iceberg": iceberg_target}
_SECONDS = 60.0


@pytest.fixture(params=[*_FOLDERS, pytest.param("kafka", marks=pytest.mark.server)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    if request.param == "kafka":
        broker: KafkaBroker = request.getfixturevalue("broker")
        return kafka_target(broker)
    return _FOLDERS[request.param](tmp_path / "target")


@pytest.fixture
def sink(target: Target) -> Iterator[Sink]:
    with closing(target.open_sink()) as sink:
        yield sink


def test_a_new_sink_takes_every_batch_once_and_in_order(target: Target, sink: Sink) -> None:
    assert sink.open(RESULTS) is None
    for batch in range(5):
        sink.deliver(batch, batch_rows(batch))
    assert target.read() == values_of(5)


def test_a_batch_that_is_delivered_again_is_there_once(target: Target, sink: Sink) -> None:
    sink.open(RESULTS)
    for batch in (0, 0, 1, 2, 1, 0, 2):
        sink.deliver(batch, batch_rows(batch))
    assert target.read() == values_of(3)


def test_a_reopened_sink_continues_where_the_killed_one_stopped(target: Target, sink: Sink) -> None:
    sink.open(RESULTS)
    for batch in range(3):
        sink.deliver(batch, batch_rows(batch))  # and then the process is killed: nothing is closed
    with closing(target.open_sink()) as second:
        assert second.open(RESULTS) == 3
        for batch in (2, 3, 4):
            second.deliver(batch, batch_rows(batch))
    assert target.read() == values_of(5)


def test_a_closed_sink_knows_batches_without_rows(target: Target) -> None:
    first = target.open_sink()
    first.open(RESULTS)
    for batch in (2, 3):
        first.deliver(batch, batch_rows(batch))
    first.close()
    with closing(target.open_sink()) as second:
        assert second.open(RESULTS) == 4


def test_many_batches_without_rows_move_the_position_of_a_killed_sink(target: Target, sink: Sink) -> None:
    sink.open(RESULTS)
    sink.deliver(0, batch_rows(0))
    for batch in range(1, 350):
        sink.deliver(batch, batch_rows(min(QUIET)))
    with closing(target.open_sink()) as second:
        assert (second.open(RESULTS) or 0) > 200
    assert target.read() == values_of(1)


def test_a_sink_of_an_earlier_run_adds_nothing_to_what_a_later_run_delivers(target: Target, sink: Sink) -> None:
    sink.open(RESULTS)
    sink.deliver(0, batch_rows(0))
    with closing(target.open_sink()) as later:
        assert later.open(RESULTS) == 1
        for batch in (1, 2):
            later.deliver(batch, batch_rows(batch))
        _try(sink, 1)
        later.deliver(3, batch_rows(3))
        later.deliver(4, batch_rows(4))
        _try(sink, 2)
    assert target.read() == values_of(5)


def _try(sink: Sink, batch: int) -> None:
    """Deliver from a driver that should not be alive: refused or ignored, as the sink likes."""
    from elastic.results.errors import SinkTakenOver, SinkUnavailable

    try:
        sink.deliver(batch, batch_rows(batch))
    except (SinkTakenOver, SinkUnavailable):
        return


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_killed_around_its_commit_leaves_each_row_once(target: Target, moment: str) -> None:
    with _start(target, moment, calls=3) as child:
        assert child.wait(_SECONDS) == -signal.SIGKILL
    assert set(target.read()) <= set(values_of(BATCHES))
    assert len(list(deliver_all(target.open_sink()))) >= BATCHES - 4
    assert target.read() == values_of(BATCHES)


def test_a_process_killed_at_any_time_leaves_each_row_once(target: Target) -> None:
    seed = time.time_ns()
    moments = random.Random(seed)  # noqa: S311 - any moment will do
    for _ in range(2):
        with _start(target, "never", calls=0) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(moments.uniform(0, 0.15))
            child.kill()
            child.wait(_SECONDS)
    list(deliver_all(target.open_sink()))
    assert target.read() == values_of(BATCHES), seed


def _start(target: Target, moment: str, calls: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.elastic.results.targets", target.kind, target.address, moment, str(calls)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603


def test_rows_of_the_tests_differ() -> None:
    assert len(set(values_of(BATCHES))) == (BATCHES - len(QUIET)) * ROWS
