"""When results could be read: found in the store afterwards, so that measuring takes nothing from the engine.

A result object is renamed into its place when it is durable, and the index of a batch is linked into its place when all
its results may be read. Both moments are the change times of the files.
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
        """Of all batches that became readable since then."""
        columns: list[tuple[Moments, Moments, Moments, Moments]] = []
        for batch in self._log.published():
            readable = self._moment(self._paths.index(batch))
            if readable < since:
                continue
            for ref in self._log.index(batch).refs:
                rows = self._log.read_objects([ref], self._stage)
                if rows is not None:
                    entered, task = rows["entered"].to_numpy(), rows[TASK].to_numpy().astype(np.int64)
                    stored = np.full(len(task), self._moment(ref.key))
                    columns.append((entered, stored, np.full(len(task), readable), task))
        return Responses(*(np.concatenate(column) for column in zip(*columns, strict=True)))

    def published(self, since: int) -> tuple[Moments, Moments]:
        """Moments of batches since then, and the rows that each of them brought."""
        found = [
            (self._moment(self._paths.index(batch)), self._log.index(batch).rows) for batch in self._log.published()
        ]
        kept = np.array([pair for pair in found if pair[0] >= since], np.int64).reshape(-1, 2)
        return kept[:, 0], kept[:, 1]

    def _moment(self, key: str) -> int:
        return (self._folder / key).stat().st_ctime_ns // 1_000
