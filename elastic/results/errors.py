"""Errors of the result log, its sinks and its readers, besides `elastic.errors.ResultsExpired`.

ElasticError
├── BatchOutOfOrder      a batch was to be published before its predecessor
├── DuplicateResults     two result objects of one batch hold the same round of the same unit
├── NotPublished         a reader asked for a batch whose results are not published yet
├── UnknownJob           the store holds no description of a job of that name
├── UnknownStage         the job has no stage of that name, or several and none was named
├── SinkUnavailable      a sink cannot be reached at the moment; the delivery is repeated
├── SinkUnreachable      a sink was unavailable for longer than sink_retry_seconds
├── SinkTakenOver        another run of the job delivers to the sink now
├── RecordRefused        Kafka refuses a record, for its size, its partition or its topic
├── ForeignFolder        a results folder holds the results of another job or run
├── ResultsReplaced      the job was started from scratch since the reader stopped
├── StateSchemaMismatch  the states of a stage have different columns, so no table can hold them all
└── SnapshotReplaced     a snapshot was replaced and deleted while it was being read
"""

from collections.abc import Iterable

from elastic.errors import ElasticError


class BatchOutOfOrder(ElasticError):
    """A batch was to be published before its predecessor; nothing was written."""

    def __init__(self, batch: int, expected: int) -> None:
        self.batch = batch
        self.expected = expected
        super().__init__(
            f"cannot publish batch {batch}: the next batch to publish is {expected}. Publish batches in order."
        )


class DuplicateResults(ElasticError):
    """Two result objects of one batch hold the same round of the same unit; nothing was written."""

    def __init__(self, batch: int, round_: int, unit_number: int) -> None:
        self.batch = batch
        self.round = round_
        self.unit_number = unit_number
        super().__init__(
            f"cannot publish batch {batch}: two result objects hold round {round_} of unit {unit_number}. "
            "Publish only one of them."
        )


class NotPublished(ElasticError):
    """A reader asked for a batch whose results are not published yet."""

    def __init__(self, batch: int, newest: int) -> None:
        self.batch = batch
        self.newest = newest
        super().__init__(
            f"the results of batch {batch} are not published yet; the newest published batch is {newest}. "
            "Call poll() to learn which batches can be read."
        )


class UnknownJob(ElasticError):
    """The store holds no description of a job of that name."""

    def __init__(self, name: str, store: str) -> None:
        self.name = name
        self.store = store
        super().__init__(
            f"{store} has no job named {name!r}. Check the name and the store, and start the job before its readers."
        )


class UnknownStage(ElasticError):
    """The job has no stage of that name, or several and none was named."""

    def __init__(self, stage: str | None, known: Iterable[str]) -> None:
        self.stage = stage
        self.known = tuple(known)
        problem = f"there is no stage {stage!r}" if stage is not None else "no stage was named"
        stages = ", ".join(map(repr, self.known)) or "none"
        super().__init__(f"{problem}; the job has these stages: {stages}. Set the option `stage` to one of them.")


class SinkUnavailable(ElasticError):
    """A sink cannot be reached at the moment; the writer delivers the batch again."""

    def __init__(self, sink: str, why: str) -> None:
        self.sink = sink
        self.why = why
        super().__init__(f"{sink} is unavailable: {why.rstrip(' .')}. Restore it; the delivery is repeated until then.")


class SinkUnreachable(ElasticError):
    """A sink was unavailable for longer than sink_retry_seconds; the result log keeps what it does not have."""

    def __init__(self, seconds: float, why: str) -> None:
        self.seconds = seconds
        self.why = why
        super().__init__(
            f"the sink was unavailable for {seconds:g} s: {why.rstrip(' .')}. Restore it and restart the job, which "
            "delivers the missing results. Raise sink_retry_seconds to wait longer."
        )


class SinkTakenOver(ElasticError):
    """Another run of the job delivers to the sink now; nothing of this delivery is committed."""

    def __init__(self, sink: str, batch: int | None) -> None:
        self.sink = sink
        self.batch = batch
        what = "its results" if batch is None else f"batch {batch}"
        super().__init__(
            f"{sink} refuses {what} of this driver, because a later run of the same job has opened it. "
            "Stop this driver, or the other one; the results are in the sink once."
        )


class RecordRefused(ElasticError):
    """Kafka refuses a record; nothing of its batch is committed."""

    def __init__(self, topic: str | None, batch: int, row: int, key: bytes | None, size: int, why: str) -> None:
        self.topic = topic
        self.batch = batch
        self.row = row
        self.key = key
        self.size = size
        self.why = why
        shown = "no key" if key is None else f"key {key[:100].decode(errors='replace')!r}"
        super().__init__(
            f"topic {topic!r} refuses row {row} of batch {batch}, a record of {size:,} bytes with {shown}: "
            f"{why.rstrip(' .')}. Correct the topic (such as its max.message.bytes), or name a topic for refused "
            "records with quarantine=..., and restart the job."
        )


class ForeignFolder(ElasticError):
    """A results folder holds the results of another job or run; nothing was written."""

    def __init__(self, folder: str, why: str) -> None:
        self.folder = folder
        self.why = why
        super().__init__(f"cannot write results to {folder}: {why}. Give the job an empty folder of its own.")


class ResultsReplaced(ElasticError):
    """The job was started from scratch since the reader stopped, so the reader's batch numbers mean other batches."""

    def __init__(self, name: str, expected: str, found: str) -> None:
        self.name = name
        self.expected = expected
        self.found = found
        super().__init__(
            f"the reader's checkpoint refers to results {expected} of job {name!r}, but the store now holds results "
            f"{found}: the job was started from scratch. Start the reader with a new checkpoint."
        )


class StateSchemaMismatch(ElasticError):
    """The states of a stage have different columns, so no table can hold them all."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(
            f"the states of the stage have no common schema: {why}. Give its operator a state_rows() whose columns "
            "have the same types for every task, or read single keys with job.state()."
        )


class SnapshotReplaced(ElasticError):
    """A snapshot was replaced and deleted while it was being read."""

    def __init__(self, task: int) -> None:
        self.task = task
        super().__init__(
            f"a newer snapshot replaced the state of task {task} while it was being read. Repeat the read."
        )
