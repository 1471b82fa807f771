"""The sink writers of a job: each has its own position and its own failure."""

from collections.abc import Mapping

from elastic.deadlines import Deadline
from elastic.results.sink_writer import SinkWriter


class SinkWriters:
    """The writers by stage, possibly none; a failed one does not hold up the others."""

    def __init__(self, by_stage: Mapping[str, SinkWriter]) -> None:
        self.by_stage = by_stage

    def start(self) -> None:
        """Start all threads."""
        for writer in self.by_stage.values():
            writer.start()

    def notify(self) -> None:
        """Poll the log now: a batch was published."""
        for writer in self.by_stage.values():
            writer.notify()

    @property
    def needed_from(self) -> int | None:
        """The first batch that may not expire: that of the slowest sink; None if no sink needs any."""
        needed = [writer.needed_from for writer in self.by_stage.values()]
        return min((batch for batch in needed if batch is not None), default=None)

    @property
    def error(self) -> BaseException | None:
        """The error that ended a writer; the first of several."""
        return next((writer.error for writer in self.by_stage.values() if writer.error is not None), None)

    @property
    def failure(self) -> str | None:
        """Why results no longer reach their sink, of every sink that failed; None while all work."""
        errors = {stage: writer.error for stage, writer in self.by_stage.items() if writer.error is not None}
        messages = [f"{self._prefix(stage)}{type(error).__name__}: {error}" for stage, error in errors.items()]
        return "; ".join(messages) if messages else None

    def wait(self, batch: int, timeout_seconds: float = float("inf")) -> str | None:
        """Wait until every sink has the batch, or has failed; return whose sink lacks it after the timeout."""
        deadline = Deadline(timeout_seconds)
        for stage, writer in self.by_stage.items():
            left = None if timeout_seconds == float("inf") else deadline.left()
            if not writer.wait(batch, left) and writer.error is None:
                return self._name(stage)
        return None

    def stop(self, timeout_seconds: float) -> list[str]:
        """Let all deliver what is published, at the same time; return in sentences what was not in time."""
        deadline = Deadline(timeout_seconds)
        for writer in self.by_stage.values():
            writer.begin_stop()
        late = {stage: w for stage, w in self.by_stage.items() if not w.stop(timeout_seconds=deadline.left())}
        return [
            f"T{self._name(stage)[1:]} has not taken batch {writer.next_batch} and those after it; the next "
            "run delivers them."
            for stage, writer in late.items()
        ]

    def _name(self, stage: str) -> str:
        return f"the sink of stage {stage!r}" if len(self.by_stage) > 1 else "the sink"

    def _prefix(self, stage: str) -> str:
        return f"stage {stage!r}: " if len(self.by_stage) > 1 else ""
