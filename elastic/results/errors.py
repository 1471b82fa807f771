"""What can go wrong with results, besides `elastic.errors.ResultsExpired`.

ElasticError
├── OutOfOrder        a batch was to be published before the one that precedes it
├── DoubleResults     two result objects of one batch claim the same step of the same slot
├── NotPublished      a batch was asked for before its results were published
├── UnknownJob        no job of that name has ever described itself in that store
├── UnknownStage      the job has no stage of that name, or none that can be meant
├── ForeignFolder     a folder for results holds somebody else's
├── OtherResults      a reader goes on with results that were started anew since
├── MixedState        states of one stage have different shapes, and no table can hold them all
└── SnapshotReplaced  the state was saved anew, and the old one collected, while it was being read
"""

from collections.abc import Iterable

from elastic.errors import ElasticError


class OutOfOrder(ElasticError):
    """A batch was to be published before the one that precedes it; nothing was written."""

    def __init__(self, batch: int, expected: int) -> None:
        self.batch = batch
        self.expected = expected
        super().__init__(f"batch {batch} cannot be published: batch {expected} is next. Publish batches in order.")


class DoubleResults(ElasticError):
    """Two result objects of one batch claim the same step of the same slot; nothing was written."""

    def __init__(self, batch: int, round_: int, slot: int) -> None:
        self.batch = batch
        self.round = round_
        self.slot = slot
        super().__init__(
            f"two objects hold the results of slot {slot} in round {round_} of batch {batch}. Publish one of them."
        )


class NotPublished(ElasticError):
    """A batch was asked for before its results were published."""

    def __init__(self, batch: int, newest: int) -> None:
        self.batch = batch
        self.newest = newest
        super().__init__(
            f"the results of batch {batch} are not published; the newest are those of batch {newest}. "
            "Ask published() first."
        )


class UnknownJob(ElasticError):
    """No job of that name has ever described itself in that store."""

    def __init__(self, name: str, store: str) -> None:
        self.name = name
        self.store = store
        super().__init__(f"{store} knows no job {name!r}. Check both, and start the job before its readers.")


class UnknownStage(ElasticError):
    """The job has no stage of that name, or several, and none was named."""

    def __init__(self, stage: str | None, known: Iterable[str]) -> None:
        self.stage = stage
        self.known = tuple(known)
        found = f"there is no stage {stage!r}" if stage is not None else "no stage is named"
        stages = ", ".join(map(repr, self.known)) or "none"
        super().__init__(f"{found}; the stages to choose from are: {stages}. Set the option `stage` to one of them.")


class ForeignFolder(ElasticError):
    """A folder for results holds somebody else's; nothing was written."""

    def __init__(self, folder: str, why: str) -> None:
        self.folder = folder
        self.why = why
        super().__init__(f"{folder} cannot take these results: {why}. Give the job an empty folder of its own.")


class OtherResults(ElasticError):
    """A reader goes on with results that were started anew since: batch numbers do not mean what they meant."""

    def __init__(self, name: str, expected: str, found: str) -> None:
        self.name = name
        self.expected = expected
        self.found = found
        super().__init__(
            f"the reader stopped in results {expected} of job {name!r}, and the store now holds results {found}: the "
            "job was started anew. Start the reader with a new checkpoint."
        )


class MixedState(ElasticError):
    """States of one stage have different shapes, and no table can hold them all."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(
            f"the states of the stage have no common columns: {why}. Give its operator a state_rows() whose columns "
            "have the same types for every task, or ask for single keys with job.state()."
        )


class SnapshotReplaced(ElasticError):
    """The state was saved anew, and the old one collected, while it was being read."""

    def __init__(self, task: int) -> None:
        self.task = task
        super().__init__(f"the state of task {task} was replaced while it was being read. Read again.")
