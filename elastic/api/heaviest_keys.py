"""The heaviest keys of a job for its snapshots, which are open to all: hashes, never names."""

import time

from elastic.api import outputs
from elastic.api.rendering import render_keys
from elastic.api.served_job import ServedJob
from elastic.errors import KeysNotCounted

_TOP = 10
_MAX_AGE_SECONDS = 2.0  # nodes report every `key_interval_seconds`, 10 by default


class HeaviestKeys:
    """Reads the keys when what is known is two seconds old, or when the epoch has changed: then keys may have moved."""

    def __init__(self, job: ServedJob) -> None:
        self._job = job
        self._found: list[outputs.Key] | None = None
        self._epoch: int | None = None
        self._read_at = 0.0

    def read(self, epoch: int) -> list[outputs.Key] | None:
        """Return the keys, heaviest first; None if the settings of the job say that keys are not counted."""
        now = time.monotonic()
        if epoch != self._epoch or now - self._read_at > _MAX_AGE_SECONDS:
            self._found, self._epoch, self._read_at = self._list_keys(), epoch, now
        return self._found

    def _list_keys(self) -> list[outputs.Key] | None:
        try:
            return render_keys(self._job.keys(_TOP), with_names=False).keys
        except KeysNotCounted:
            return None
