"""The clock of a batch and the source of its rows: both are data, so that a replay is deterministic."""

from typing import Any, NamedTuple, Self


class InputTime(NamedTuple):
    """The clock of one input of a job.

    `active_ms` is the processing time of the newest batch that had rows of it, or the time when the life of the job in
    which the batch was committed began to read it, if that is later.
    `watermarks` begins with the one after the batch; the one before it and those of the batches before follow, as far
    as some stage of the job needs them.
    """

    active_ms: int
    watermarks: tuple[int | None, ...]

    def to_json(self) -> list[Any]:
        return [self.active_ms, list(self.watermarks)]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        active_ms, watermarks = document
        return cls(active_ms, tuple(watermarks))


class BatchTime(NamedTuple):
    """The clock of one batch, in milliseconds since 1970; a watermark is None while there is none.

    `watermark_ms` holds while the rows of the batch are processed, `next_watermark_ms` after them. A job with several
    inputs, or with stages that lag behind, has a clock for each of its `inputs`, in the order of their names; then
    these two are the least watermarks of all. Earlier versions stored none, as jobs do for which these two are enough.
    """

    batch: int
    timestamp_ms: int
    watermark_ms: int | None = None
    next_watermark_ms: int | None = None
    inputs: tuple[InputTime, ...] = ()

    def watermark(self, number: int, lag: int) -> int | None:
        """Return the watermark of an input: with lag -1 that after the batch, with 0 that before, with 1 the next.

        A lag beyond what is stored gives the oldest that is.
        """
        if not self.inputs:
            return self.next_watermark_ms if lag < 0 else self.watermark_ms
        known = self.inputs[number].watermarks
        return known[min(lag + 1, len(known) - 1)]

    def to_json(self) -> list[Any]:
        """Return a list, not a dict: a manifest may hold thousands."""
        document: list[Any] = list(self[:4])
        return [*document, [each.to_json() for each in self.inputs]] if self.inputs else document

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        inputs = tuple(InputTime.from_json(each) for given in document[4:] for each in given)
        return cls(*document[:4])._replace(inputs=inputs)


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
