"""Digests of the source offsets that a micro-batch was planned from.

Spark plans a batch, writes its offsets to the checkpoint, and then sends the batch. A query whose checkpoint lost its
newest entry plans the same batch number again, with the rows that the source has by then. Only the offsets distinguish
that from a replay.
"""

import hashlib
import json
import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
_NO_OFFSET = "-"


class SourceOffsets:
    """Reads the offsets of the running query in a separate thread, in a few milliseconds per batch."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._warned = False
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="source-offsets")

    def read(self, query: str, batch: int) -> Future[str | None]:
        """Return a digest of the batch's offsets in all sources; None, with one warning, if they cannot be read."""
        return self._executor.submit(self._read, query, batch)

    def _read(self, query: str, batch: int) -> str | None:
        try:
            execution = self._session._jsparkSession.streams().get(query).streamingQuery()  # noqa: SLF001 - no public way
            return self._digest(execution, batch)
        except Py4JError as error:
            if not self._warned:
                self._warned = True
                _log.warning(
                    "cannot read the source offsets of batch %d; a checkpoint that loses its newest batch will not be "
                    "detected: %s",
                    batch,
                    str(error).partition("\n")[0],
                )
            return None

    def _digest(self, execution: Any, batch: int) -> str | None:
        entry = execution.offsetLog().get(batch)
        if entry.isEmpty():
            return None
        digest = hashlib.sha256()
        offsets = entry.get().offsets()
        for number in range(offsets.size()):
            offset = offsets.apply(number)
            text = _NO_OFFSET if offset.isEmpty() else offset.get().json()
            files = self._digest_file_list(execution, number, text)
            digest.update(json.dumps([number, text, files]).encode())
        return digest.hexdigest()

    def _digest_file_list(self, execution: Any, source: int, offset: str) -> str | None:
        """Return a digest of a file source's log entry, None for other sources: its offset only numbers that entry."""
        try:
            number = json.loads(offset)["logOffset"]
        except (ValueError, TypeError, KeyError):
            return None
        jvm: Any = self._session.sparkContext._jvm  # noqa: SLF001
        for name in (f"{number}", f"{number}.compact"):
            path = jvm.org.apache.hadoop.fs.Path(execution.checkpointFile(f"sources/{source}/{name}"))
            files = path.getFileSystem(self._session.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001
            if files.exists(path):
                stream = files.open(path)
                try:
                    return str(jvm.org.apache.commons.codec.digest.DigestUtils.sha256Hex(stream))
                finally:
                    stream.close()
        return None
