"""Logs in files."""

import gzip
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mdp.errors import InvalidLog
from mdp.learning import read_log
from mdp.learning.logs import format_time

NOON = datetime(2015, 3, 1, 12)


def csv(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["timestamp,value,note", *lines, ""]))
    return path


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2015-03-01 12:00:00", "2015-03-01T12:00:00"),
        ("2015-03-01T12:00:00", "2015-03-01T12:00:00"),
        ("2015-03-01 12:00", "2015-03-01T12:00:00"),
        ("2015-03-01", "2015-03-01T00:00:00"),
        ("2015-03-01 12:00:00.250", "2015-03-01T12:00:00"),
        ("2015-03-01T12:00:00Z", "2015-03-01T12:00:00"),
        ("2015-03-01T12:00:00+02:00", "2015-03-01T10:00:00"),
        ("2015-03-01 12:00:00-0530", "2015-03-01T17:30:00"),
        ("1425211200", "2015-03-01T12:00:00"),
        ("1425211200.75", "2015-03-01T12:00:00"),
    ],
)
def test_times_are_read_as_they_are_usually_written(tmp_path: Path, written: str, read: str) -> None:
    log = read_log(csv(tmp_path / "log.csv", f"{written},7,"), load_column="value")
    assert format_time(log.times[0]) == read
    assert log.values.tolist() == [7]


def test_fractions_of_a_second_are_kept(tmp_path: Path) -> None:
    log = read_log(csv(tmp_path / "log.csv", "2015-03-01 12:00:00.250,1,", "1425211200.75,2,"), load_column="value")
    assert [str(time)[-6:] for time in log.times] == ["250000", "750000"]


@pytest.mark.parametrize(
    "times",
    [
        pa.array([NOON], pa.timestamp("ns")),
        pa.array([NOON], pa.timestamp("ms")),
        pa.array([NOON.replace(tzinfo=UTC)], pa.timestamp("us", "Europe/Berlin")),
        pa.array([1425211200], pa.int64()),
        pa.array([1425211200.0]),
        pa.array(["2015-03-01 12:00:00"]),
    ],
    ids=lambda times: str(times.type),
)
def test_parquet_has_times_of_many_kinds(tmp_path: Path, times: Any) -> None:
    pq.write_table(pa.table({"when": times, "load": [3]}), tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet", time_column="when", load_column="load")
    assert format_time(log.times[0]) == "2015-03-01T12:00:00"


def test_a_date_is_its_midnight(tmp_path: Path) -> None:
    pq.write_table(pa.table({"timestamp": [date(2015, 3, 1)], "value": [3]}), tmp_path / "log.parquet")
    assert format_time(read_log(tmp_path / "log.parquet", load_column="value").times[0]) == "2015-03-01T00:00:00"


def test_several_files_and_folders_are_one_log(tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    first = csv(tmp_path / "first.csv", "2015-03-01,1,")
    (folder / "b.csv.gz").write_bytes(gzip.compress(csv(folder / "b.csv", "2015-03-04,4,").read_bytes()))
    (folder / "b.csv").unlink()
    csv(folder / "a.csv", "2015-03-03,3,")
    csv(folder / "_temporary.csv", "2015-03-09,9,")
    (folder / "readme.txt").write_text("not a log")
    log = read_log([folder, first], load_column="value")
    assert log.values.tolist() == [1, 3, 4]
    assert log.source == f"{folder}, {first}"


def test_a_log_of_node_counts_says_so(tmp_path: Path) -> None:
    log = read_log(csv(tmp_path / "log.csv", "2015-03-01,8,"), nodes_column="value")
    assert log.holds == "nodes"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("noon,7,", "the time 'noon'"),
        (",7,", "no time"),
        ("2015-03-01 12:00:00,many,", "the value 'many'"),
        ("2015-03-01 12:00:00,,", "no value"),
        ("2015-03-01 12:00:00,-7,", "the value -7"),
        ("2015-03-01 12:00:00,nan,", "the value nan"),
        ("2015-03-01 12:00:00,7", "cannot be read"),
    ],
)
def test_the_first_bad_record_is_named(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(InvalidLog, match=says):
        read_log(csv(tmp_path / "log.csv", "2015-03-01 11:00:00,7,", line), load_column="value")


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path, name: str) -> None:
    csv(tmp_path / "log.csv", "2015-03-01,7,")
    pq.write_table(pa.table({"timestamp": [1], "value": [3]}), tmp_path / "log.parquet")
    with pytest.raises(InvalidLog, match=r"no column 'tweets'\. It has timestamp, value"):
        read_log(tmp_path / name, load_column="tweets")


def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "log.txt").write_text("")
    for name in ("nowhere.csv", "empty", "log.txt"):
        with pytest.raises(InvalidLog, match="there is no log at"):
            read_log(tmp_path / name, load_column="value")
    with pytest.raises(InvalidLog, match="no log was named"):
        read_log([], load_column="value")


def test_an_empty_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidLog, match="empty"):
        read_log(csv(tmp_path / "log.csv"), load_column="value")


def test_one_column_must_be_named(tmp_path: Path) -> None:
    path = csv(tmp_path / "log.csv", "2015-03-01,7,")
    for columns in ({}, {"load_column": "value", "nodes_column": "value"}):
        with pytest.raises(InvalidLog, match="Name one column"):
            read_log(path, **columns)
