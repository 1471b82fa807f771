"""When results became readable, read from the store afterwards, so that measuring does not slow the engine.

A result object is renamed to its final name when it is durable, and the index of a batch is linked to its final name
when all its results are published. Both moments are the change times of the files.
"""

import os
from pathlib import Path

import numpy as np

import storage
from benchmarks.migration.measures import Moments, Responses
from elastic.results import TASK, ResultLog
from elastic.results.paths import ResultPaths
from elastic.secret import application_secret


class PublishedResults:
    """The results of one job in a folder."""

    def __init__(self, folder: Path, job: str, stage: str) -> None:
        self._folder = folder
        self._stage = stage
        self._paths = ResultPaths(job)
        self._log = ResultLog(storage.open(folder.as_uri()), application_secret(None, os.environ), job)

    def responses(self, since: int) -> Responses:
        """Return the responses of all batches published since then."""
        columns: list[tuple[Moments, Moments, Moments, Moments]] = []
        for batch in self._log.poll():
            readable = self._read_time(self._paths.index(batch))
            if readable < since:
                continue
            for ref in self._log.index(batch).refs:
                rows = self._log.read_objects([ref], self._stage)
                if rows is not None:
                    entered, task = rows["entered"].to_numpy(), rows[TASK].to_numpy().astype(np.int64)
                    stored = np.full(len(task), self._read_time(ref.key))
                    columns.append((entered, stored, np.full(len(task), readable), task))
        return Responses(*(np.concatenate(column) for column in zip(*columns, strict=True)))

    def published(self, since: int) -> tuple[Moments, Moments]:
        """Return the times of batches published since then, and their row counts."""
        found = [(self._read_time(self._paths.index(batch)), self._log.index(batch).rows) for batch in self._log.poll()]
        kept = np.array([pair for pair in found if pair[0] >= since], np.int64).reshape(-1, 2)
        return kept[:, 0], kept[:, 1]

    def _read_time(self, key: str) -> int:
        return (self._folder / key).stat().st_ctime_ns // 1_000
