"""The events of a query as Parquet files: a folder per input, which both engines read as streams, in the same batches.

A file has a fixed number of rows of all inputs together, and those that follow it have later times of modification,
which Spark reads files by. The last files have one row per input, so late that every window is complete.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from examples.nexmark.events import SCHEMA, START_MS, make_events

FILES_PER_BATCH = 2  # one per core
_EVENTS_OF = {"persons": 1, "auctions": 3, "bids": 46}  # of 50
_CYCLE = 50
_FLUSHES = 4  # batches; those of the second stage with windows are complete in the third
END_MS = START_MS + 10**9  # no event is later
_FLUSH_MS = 3_600_000  # between two of the last files
_NUMBERED = {"auction", "person", "category", "seller"}  # -1 in the last files
_COLUMNS = {
    "persons": ["input", "ts", "person", "state"],
    "auctions": ["input", "ts", "person", "auction", "category", "expires"],
    "bids": ["input", "ts", "person", "auction", "price"],
}


@dataclass(frozen=True)
class EventFiles:
    """The files of some inputs: `batches` of `rows` each, in steps of `rows / per_second` seconds of event time."""

    folder: Path
    inputs: tuple[str, ...]
    batches: int
    rows: int

    def read_stream(self, spark: SparkSession, name: str) -> DataFrame:
        """Return an input as a stream, with the files of a batch per trigger."""
        schema = pa.schema([SCHEMA.field(column) for column in _COLUMNS[name]])
        reader = spark.readStream.schema(from_arrow_schema(schema)).option("maxFilesPerTrigger", FILES_PER_BATCH)
        return reader.parquet(str(self.folder / name))


def write_events(folder: Path, inputs: Sequence[str], *, batches: int, rows: int, per_second: int) -> EventFiles:
    """Write `batches` of about `rows` rows of these inputs, `per_second` of them in a second of event time."""
    share = sum(_EVENTS_OF[name] for name in inputs)
    cycles = max(1, rows // FILES_PER_BATCH // share)
    rate = per_second * _CYCLE // share
    for number in range(batches * FILES_PER_BATCH):
        events = make_events(number * cycles * _CYCLE, cycles * _CYCLE, per_second=rate)
        for name in inputs:
            _write(events.filter(pc.equal(events["input"], name)), folder / name, number)
    for flush in range(_FLUSHES * FILES_PER_BATCH):
        for name in inputs:
            _write(_make_flush(name, flush), folder / name, batches * FILES_PER_BATCH + flush)
    return EventFiles(folder, tuple(inputs), batches, cycles * share * FILES_PER_BATCH)


def is_event(answers: pa.Table) -> pa.Array:
    """Return which rows of an answer are about events, and not about the rows of the last files."""
    is_kept = np.ones(answers.num_rows, np.bool_)
    for column in _NUMBERED.intersection(answers.column_names):
        is_kept &= answers[column].to_numpy() >= 0
    if "start_ms" in answers.column_names:
        is_kept &= answers["start_ms"].to_numpy() < END_MS - _FLUSH_MS
    return pa.array(is_kept)


def _make_flush(name: str, number: int) -> pa.Table:
    time_us = (END_MS + number * _FLUSH_MS) * 1_000
    row = {"input": name, "ts": time_us, "person": -1, "auction": -1, "state": "-", "category": -1, "price": 1}
    columns = {each.name: pa.array([row.get(each.name, time_us + 1)]) for each in SCHEMA}
    return pa.table({each.name: columns[each.name].cast(each.type) for each in SCHEMA}, schema=SCHEMA)


def _write(rows: pa.Table, folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:05}.parquet"
    pq.write_table(rows.select(_COLUMNS[folder.name]), path)
    os.utime(path, (START_MS // 1_000 + number,) * 2)
