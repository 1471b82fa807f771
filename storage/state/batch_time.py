"""The clock of a batch and the source of its rows: both are data, so that a replay is deterministic."""

from typing import Any, NamedTuple, Self


class BatchTime(NamedTuple):
    """The clock of one batch, in milliseconds since 1970; a watermark is None while there is none.

    `watermark_ms` holds while the rows of the batch are processed, `next_watermark_ms` after them.
    """

    batch: int
    timestamp_ms: int
    watermark_ms: int | None = None
    next_watermark_ms: int | None = None

    def to_json(self) -> list[int | None]:
        """Return a list, not a dict: a manifest may hold thousands."""
        return list(self)

    @classmethod
    def from_json(cls, document: list[int]) -> Self:
        return cls(*document)


class SourceBatch(NamedTuple):
    """The source's batch that a committed batch holds: its number at the source, and a digest of its offsets.

    The numbers of the source and the manifest differ once the driver has committed batches of its own. A batch that the
    source sends again with other offsets has another digest, so it is not a replay. The digest is None where the source
    reveals no offsets, or where version 0.1 stored the batch.
    """

    batch: int
    digest: str | None = None

    def to_json(self) -> list[int | str | None]:
        return list(self)

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        return cls(*document)
