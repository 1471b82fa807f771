"""What time it was in a batch: time is data, so that a replay sees the same as the first run."""

from typing import NamedTuple, Self


class BatchTime(NamedTuple):
    """The clock of one batch, in milliseconds since 1970; a watermark is None while there is none.

    `watermark_ms` holds while the rows of the batch are processed, `next_watermark_ms` after them.
    """

    batch: int
    timestamp_ms: int
    watermark_ms: int | None = None
    next_watermark_ms: int | None = None

    def to_json(self) -> list[int | None]:
        """A list, not a dict: a manifest may hold thousands."""
        return list(self)

    @classmethod
    def from_json(cls, document: list[int]) -> Self:
        return cls(*document)
