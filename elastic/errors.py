"""Every error of the engine, typed, with its facts as attributes and a last sentence that says what to do.

ElasticError
├── InvalidJob (also a ValueError)    the job itself cannot be right; nothing was started
│   ├── UnknownColumn                 a key column that the rows do not have
│   ├── UnsupportedKeyType            a key of a type that has no hash
│   ├── UnserializableOperator        an operator that cannot travel to the nodes
│   ├── TooFewSlots                   the cluster can never run that many nodes beside the senders
│   ├── SpeculationOn                 Spark would run nodes twice
│   ├── InvalidSetting                a setting with a value that cannot be right
│   ├── UnknownSetting                a setting that nobody reads
│   ├── MissingSecret                 no secret to sign state with
│   └── MissingPackage                a feature whose optional package is not installed
├── NameTaken                         a job of that name is running
├── IncompatibleRestart               the stored state belongs to another version of the job
├── CheckpointMismatch                Spark's checkpoint and the stored state tell different stories
├── NullKey                           rows without a key, and the job says that is wrong
├── RowTooLarge                       one row above the limit
├── OperatorFailed                    the user's operator raised
├── CombineFailed                     the user's operator raised while it combined rows on their way to it
├── InvalidOutput                     the user's operator gave rows that do not fit its schema
├── NodeLost                          a node fell silent or ended
├── NoRoom                            the cluster did not start the nodes in time
├── StoreAway                         the store was away for longer than the job may wait
├── ResultsExpired                    a reader asks for results that retention has removed
├── InvalidRequest (also a ValueError) a scale request that cannot be right; nothing was started
│   ├── InvalidAutoscaling            an argument of an autoscaler that cannot be right
│   └── UnknownPolicy                 a policy that is not there
├── AutoscalerRunning                 the job has an autoscaler already
├── MigrationRunning                  another migration of the job is under way
├── MigrationFailed                   a migration did not come to its end; what it moved counts, the rest stayed
├── JobStopped                        the job is no longer running
└── StateUnavailable                  the state is on its way or being restored; ask again

All of them cross process boundaries: pickled or copied, they keep their message and their facts.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class ElasticError(Exception):
    """Base of everything the engine raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the message alone, which no error here with facts of its own accepts.
        return _revived, (type(self), self.args), self.__dict__


class InvalidJob(ElasticError, ValueError):
    """A job, or an argument of one, that cannot be right; nothing was started."""


class UnknownColumn(InvalidJob):
    """A key column that the rows do not have."""

    def __init__(self, column: str, known: Iterable[str]) -> None:
        self.column = column
        self.known = tuple(known)
        super().__init__(
            f"there is no column {column!r}; the rows have {_listed(self.known)}."
            f"{_nearest(column, self.known)} Name one of these, or select the column before."
        )


class UnsupportedKeyType(InvalidJob):
    """A key of a type that has no hash."""

    def __init__(self, column: str, kind: object) -> None:
        self.column = column
        self.kind = str(kind)
        super().__init__(
            f"column {column!r} of type {self.kind} cannot be a key. Use booleans, numbers, strings, binaries, dates, "
            "timestamps, or structs of these; cast the column, or make a string of it."
        )


class UnserializableOperator(InvalidJob):
    """An operator that cannot travel to the nodes."""

    def __init__(self, operator: str, cause: BaseException | str) -> None:
        self.operator = operator
        self.cause = cause if isinstance(cause, str) else _said(cause)
        super().__init__(
            f"operator {operator!r} cannot be pickled: {self.cause}. "
            "Open connections, locks and files in its open(), not in __init__."
        )


class TooFewSlots(InvalidJob):
    """The cluster can never run that many nodes and still have a core for the senders."""

    def __init__(self, nodes: int, slots: int, needed: int, master: str) -> None:
        self.nodes = nodes
        self.slots = slots
        self.needed = needed
        self.master = master
        super().__init__(
            f"{nodes} nodes need {needed} task slots, with room for reading the source, but {master!r} has {slots}. "
            f"Use at most {max(0, nodes - (needed - slots))} nodes, or give Spark more cores, "
            f"such as local[{needed}]."
        )


class SpeculationOn(InvalidJob):
    """Spark would start a second copy of every node, because nodes run long."""

    def __init__(self) -> None:
        super().__init__("spark.speculation is on, and would start nodes twice. Set spark.speculation to false.")


class InvalidSetting(InvalidJob):
    """A setting with a value that cannot be right."""

    def __init__(self, name: str, value: object, why: str) -> None:
        self.name = name
        self.value = value
        self.why = why
        super().__init__(f"setting {name} cannot be {value!r}: {why}. Correct it, or leave it out for the default.")


class UnknownSetting(InvalidJob):
    """A setting that nobody reads."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(
            f"there is no setting {name!r}.{_nearest(name, self.known)} Use one of {_listed(self.known, 40)}."
        )


class MissingSecret(InvalidJob):
    """No secret to sign state with, and none could be made."""

    def __init__(self, where: str, why: str) -> None:
        self.where = where
        self.why = why
        super().__init__(f"no secret to sign state with: {where}: {why}. Set ELASTIC_SECRET, the same for every run.")


class MissingPackage(InvalidJob):
    """A feature whose optional package is not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        self.feature = feature
        self.package = package
        self.extra = extra
        super().__init__(
            f"{feature} needs the package {package!r}, which is not installed here. "
            f"Run: pip install 'spark-elastic[{extra}]'"
        )


class NameTaken(ElasticError):
    """A job of that name is running."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"a job named {name!r} is running already. Stop it first, or choose another name.")


class IncompatibleRestart(ElasticError):
    """The stored state belongs to another version of the job."""

    def __init__(self, name: str, what: str, before: object, now: object) -> None:
        self.name = name
        self.what = what
        self.before = before
        self.now = now
        super().__init__(
            f"job {name!r} was stored with {what} {before!r}, and is started with {now!r}. "
            "Start it as it was, or under another name for a fresh state."
        )


class CheckpointMismatch(ElasticError):
    """Spark's checkpoint and the stored state tell different stories: going on would lose or repeat batches.

    Spark sends `next_batch` next; the stored state includes every batch up to `last_batch`.
    """

    def __init__(self, name: str, next_batch: int, last_batch: int) -> None:
        self.name = name
        self.next_batch = next_batch
        self.last_batch = last_batch
        if next_batch == last_batch:
            wrong = "and with other source offsets than the stored batch has, so its rows would be skipped as a replay"
        elif next_batch > last_batch:
            wrong = "batches between would be lost"
        else:
            wrong = "its rows would be skipped as a replay"
        super().__init__(
            f"job {name!r}: Spark's checkpoint goes on with batch {next_batch}, but the stored state ends with batch "
            f"{last_batch}; {wrong}. Bring back the checkpoint and the store that belong together, or start under "
            "another name with a new checkpoint."
        )


class NullKey(ElasticError):
    """Rows without a key, and the job says that is wrong; the batch was not committed."""

    def __init__(self, column: str, rows: int, batch: int) -> None:
        self.column = column
        self.rows = rows
        self.batch = batch
        super().__init__(
            f"{rows} rows of batch {batch} have no value in the key column {column!r}. "
            'Filter them out before, or set null_keys to "keep" or "drop".'
        )


class RowTooLarge(ElasticError):
    """One row above the limit; the batch was not committed."""

    def __init__(self, size: int, limit: int, batch: int) -> None:
        self.size = size
        self.limit = limit
        self.batch = batch
        super().__init__(
            f"a row of batch {batch} takes {size:,} bytes, more than the {limit:,} allowed. "
            "Keep such values in a store and send their address, or raise max_row_bytes."
        )


class OperatorFailed(ElasticError):
    """The user's operator raised; `cause_text` is its traceback, `row` the first row of its input if known."""

    def __init__(self, operator: str, task: int, batch: int, cause_text: str, row: str | None = None) -> None:
        self.operator = operator
        self.task = task
        self.batch = batch
        self.cause_text = cause_text
        self.row = row
        near = f"\nThe first of its rows: {row}" if row is not None else ""
        super().__init__(
            f"operator {operator!r} failed on task {task} in batch {batch}:\n{cause_text.rstrip()}{near}\n"
            'Correct the operator and start the job again, or set on_error to "skip" to set such rows aside.'
        )


class CombineFailed(ElasticError):
    """The user's operator raised while it combined rows on their way to it; `cause_text` is its traceback."""

    def __init__(self, operator: str, cause_text: str) -> None:
        self.operator = operator
        self.cause_text = cause_text
        super().__init__(
            f"operator {operator!r} failed to combine rows:\n{cause_text.rstrip()}\n"
            "Correct its combine and start the job again; the batch is not lost, it comes again."
        )


class InvalidOutput(ElasticError):
    """The user's operator gave rows that do not fit what it declared."""

    def __init__(self, operator: str, why: str) -> None:
        self.operator = operator
        self.why = why
        super().__init__(
            f"operator {operator!r} gave rows that do not fit: {why}. Give what output_schema and emits declare, or "
            "change the declaration."
        )


class NodeLost(ElasticError):
    """A node fell silent or ended; the engine restores its tasks elsewhere by itself where it can."""

    def __init__(self, node: str, why: str) -> None:
        self.node = node
        self.why = why
        super().__init__(f"node {node!r} is lost: {why}. Look at its executor's log; its tasks come back elsewhere.")


class NoRoom(ElasticError):
    """The cluster did not start the nodes in time."""

    def __init__(self, started: int, wanted: int, seconds: float) -> None:
        self.started = started
        self.wanted = wanted
        self.seconds = seconds
        super().__init__(
            f"only {started} of {wanted} nodes started within {seconds:g} s. Free some task slots or add executors; "
            "raise node_start_seconds if executors take longer to come."
        )


class StoreAway(ElasticError):
    """The store was away for longer than the job may wait; nothing that was committed is lost."""

    def __init__(self, seconds: float, why: str = "") -> None:
        self.seconds = seconds
        self.why = why
        super().__init__(
            f"the store did not answer for {seconds:g} s{f' ({why})' if why else ''}. Bring it back and start the job "
            "again: it goes on where it was; raise store_patience_seconds to wait longer."
        )


class ResultsExpired(ElasticError):
    """A reader asks for results that retention has removed."""

    def __init__(self, wanted: int, oldest: int) -> None:
        self.wanted = wanted
        self.oldest = oldest
        super().__init__(
            f"the results of batch {wanted} are gone; the oldest kept are those of batch {oldest}. Start the reader "
            f"afresh from batch {oldest}, and raise retain_result_batches so that readers can fall that far behind."
        )


class InvalidRequest(ElasticError, ValueError):
    """A scale request that cannot be right; nothing was started."""


class InvalidAutoscaling(InvalidRequest):
    """An argument of an autoscaler that cannot be right; nothing was started."""

    def __init__(self, name: str, value: object, why: str) -> None:
        self.name = name
        self.value = value
        self.why = why
        super().__init__(f"a job cannot be autoscaled with {name}={value!r}: {why}. Correct it, or leave it out.")


class UnknownPolicy(InvalidRequest):
    """A policy that is not there: neither a name of one nor an object that decides."""

    def __init__(self, policy: object, known: Iterable[str]) -> None:
        self.policy = str(policy)
        self.known = tuple(known)
        super().__init__(
            f"there is no policy {self.policy!r}.{_nearest(self.policy, self.known)} Use one of {_listed(self.known)}, "
            "or an object with a method decide(observation)."
        )


class AutoscalerRunning(ElasticError):
    """The job has an autoscaler already."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"job {name!r} is autoscaled already. Stop that autoscaler first.")


class MigrationRunning(ElasticError):
    """Another migration of the job is under way."""

    def __init__(self) -> None:
        super().__init__("a migration is under way. Wait for it, cancel it, or, in Python, ask again with queue=True.")


class MigrationFailed(ElasticError):
    """A migration did not come to its end; what it moved counts, the rest stayed where it was."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"the migration failed: {why} Look at its story, and ask again.")


class JobStopped(ElasticError):
    """The job is no longer running."""

    def __init__(self, name: str, why: str = "") -> None:
        self.name = name
        self.why = why
        super().__init__(f"job {name!r} has stopped{f': {why}' if why else ''}. Start it again.")


class StateUnavailable(ElasticError):
    """The state of a task is on its way or being restored."""

    def __init__(self, task: int, node: str | None) -> None:
        self.task = task
        self.node = node
        where = f"node {node!r} does not have it yet" if node is not None else "no node has it now"
        super().__init__(f"the state of task {task} cannot be read: {where}. Ask again in a moment.")


def _revived(kind: type[ElasticError], args: tuple[Any, ...]) -> ElasticError:
    return kind.__new__(kind, *args)


def _said(cause: BaseException) -> str:
    return f"{type(cause).__name__}: {cause}"


def _listed(names: Iterable[str], most: int = 12) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _nearest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
