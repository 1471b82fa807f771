"""When a step happens; the same again when it is replayed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moment:
    """One round of one batch at one slot, and the batch's clocks.

    `watermark_ms` holds while the rows are processed, `next_watermark_ms` after them; None without a watermark.
    """

    slot: int
    task: int
    batch: int
    round: int
    timestamp_ms: int
    watermark_ms: int | None = None
    next_watermark_ms: int | None = None

    @property
    def clocks(self) -> dict[str, int | None]:
        """What the time is for each kind of timer, once the rows are processed."""
        return {"event": self.next_watermark_ms, "processing": self.timestamp_ms}
