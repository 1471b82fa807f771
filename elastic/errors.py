"""Every error of the engine, typed, with its facts as attributes and a last sentence that says what to do.

ElasticError
├── InvalidJob (also a ValueError)    the job itself cannot be right; nothing was started
│   ├── UnknownColumn                 a key column that the rows do not have
│   ├── UnsupportedKeyType            a key of a type that has no hash
│   ├── InvalidEventTime              an event-time column that is no timestamp
│   ├── NotAnOperator                 a class, or something else, in the place of an operator
│   ├── UnserializableOperator        an operator that cannot travel to the nodes
│   ├── InvalidStore                  a store that no job can keep its state in
│   ├── SparkConnect                  a session of Spark Connect, which has no task slots to offer
│   ├── TooFewSlots                   too few task slots for that many nodes and the senders
│   ├── SpeculationOn                 Spark would run nodes twice
│   ├── InvalidSetting                a setting with a value that cannot be right
│   ├── UnknownSetting                a setting that nobody reads
│   ├── MissingSecret                 no secret to sign state with
│   ├── ExposedSecret                 a secret where every user of the machine could read it
│   └── MissingPackage                a feature whose optional package is not installed
├── NameTaken                         a job of that name is running
├── IncompatibleRestart               the stored state belongs to another version of the job
├── CheckpointMismatch                Spark's checkpoint and the stored state tell different stories
├── StreamFailed                      Spark's query failed: a source, a record or an expression of the user's
├── NullKey                           rows without a key, and the job says that is wrong
├── RowTooLarge                       one row above the limit
├── OperatorFailed                    the user's operator raised
├── CombineFailed                     the user's operator raised while it combined rows on their way to it
├── InvalidOutput                     the user's operator gave rows that do not fit its schema
├── NodeLost                          a node fell silent or ended
├── NodeInUse                         a node that is to leave still owns tasks
├── PoisonedStep                      process after process died at the same step
├── NodeStartFailed                   a node cannot start, and says why
├── NoRoom                            the cluster did not start the nodes in time
├── SparkLost                         Spark's JVM is gone, and with it the stream and the nodes
├── StoreAway                         the store was away for longer than the job may wait
├── SinkFailed                        results no longer reach their sink; the job itself goes on
├── ResultsExpired                    a reader asks for results that retention has removed
├── InvalidRequest (also a ValueError) a scale request that cannot be right; nothing was started
│   ├── InvalidAutoscaling            an argument of an autoscaler that cannot be right
│   └── UnknownPolicy                 a policy that is not there
├── AutoscalerRunning                 the job has an autoscaler already
├── MigrationRunning                  another migration of the job is under way
├── MigrationFailed                   a migration did not come to its end; what it moved counts, the rest stayed
├── InvalidKey (also a ValueError)    a key of another type than the key columns have
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


class InvalidEventTime(InvalidJob):
    """An event-time column that is no timestamp."""

    def __init__(self, column: str, kind: object) -> None:
        self.column = column
        self.kind = str(kind)
        super().__init__(
            f"event_time names column {column!r} of type {self.kind}, which is not a timestamp. "
            f"Use a timestamp column; cast it with to_timestamp({column}) or timestamp_millis({column}) before."
        )


class NotAnOperator(InvalidJob):
    """A class, or something else, in the place of an operator."""

    def __init__(self, given: object) -> None:
        self.given = given.__qualname__ if isinstance(given, type) else type(given).__name__
        what = "a class" if isinstance(given, type) else "not an operator"
        advice = f"an instance, {self.given}()" if isinstance(given, type) else "an instance of a class from Operator"
        super().__init__(f"operator={self.given} is {what}. Give {advice}.")


class UnserializableOperator(InvalidJob):
    """An operator that cannot travel to the nodes."""

    def __init__(self, operator: str, cause: BaseException | str) -> None:
        self.operator = operator
        self.cause = cause if isinstance(cause, str) else _said(cause)
        super().__init__(
            f"operator {operator!r} cannot be pickled: {self.cause}. "
            "Open connections, locks and files in its open(), not in __init__."
        )


class InvalidStore(InvalidJob):
    """A store that no job can keep its state in. Its URL is not repeated, since it may hold credentials."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(
            f"the store cannot hold the state of a job: {why.rstrip('.')}. "
            "Use a URL that the driver and all executors reach, file:///folder or s3://bucket/prefix."
        )


class SparkConnect(InvalidJob):
    """A session of Spark Connect."""

    def __init__(self) -> None:
        super().__init__(
            "Spark Connect is not supported: nodes need the driver's SparkContext. "
            "Use a classic session, such as elastic.local_session() or spark-submit."
        )


class TooFewSlots(InvalidJob):
    """Spark has too few task slots for the nodes of all jobs and the senders; nothing was started."""

    def __init__(self, nodes: int, slots: int, needed: int, master: str) -> None:
        self.nodes = nodes
        self.slots = slots
        self.needed = needed
        self.master = master
        super().__init__(
            f"{nodes} nodes need {needed} task slots, with those of other jobs and of the senders, but {master!r} has "
            f"{slots}. "
            f"Use at most {max(0, nodes - (needed - slots))} nodes, or give Spark more cores"
            f"{f', such as local[{needed}]' if master.startswith('local') else ''}."
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


class ExposedSecret(InvalidJob):
    """A secret on a command line, which every user of the machine can read in the process list."""

    def __init__(self, where: str, name: str, advice: str) -> None:
        self.where = where
        self.name = name
        self.advice = advice
        super().__init__(
            f"{where} {name}=... shows a secret in the process list, which every user of this machine can read; where "
            f"there are others, it is no secret any more. {advice}"
        )


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


class StreamFailed(ElasticError):
    """Spark's query failed; `reason` is the innermost one, the full text is in the log."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(
            f"the stream of job {name!r} failed: {reason}. Correct the source, the record or the expression, and start "
            "the job again: it continues with the same batch."
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


class NodeInUse(ElasticError):
    """A node that is to leave still owns tasks; it stays."""

    def __init__(self, node: str, tasks: Iterable[int]) -> None:
        self.node = node
        self.tasks = tuple(tasks)
        super().__init__(
            f"node {node!r} cannot leave: it still owns tasks {_listed(self.tasks)}. "
            "Move these tasks to other nodes first, with job.scale or job.rebalance."
        )


class PoisonedStep(ElasticError):
    """Process after process died at the same step, so the next one would die there too.

    `tasks` are those that the last one was working on, `reason` is why it was lost.
    """

    def __init__(self, node: str, batch: int, round_: int, tasks: Iterable[int], deaths: int, reason: str) -> None:
        self.node = node
        self.batch = batch
        self.round = round_
        self.tasks = tuple(tasks)
        self.deaths = deaths
        self.reason = reason
        listed = ", ".join(map(str, self.tasks))
        super().__init__(
            f"{deaths} processes of {node} died one after the other at the same step: batch {batch}, round {round_}, "
            f"task{'' if len(self.tasks) == 1 else 's'} {listed}. The last one: {reason}. A row of this batch probably "
            "crashes the operator's native code, takes more memory than the executor has, or never ends. Look at the "
            "executor's log, correct the operator or give it more memory, and start the job again: it "
            'continues with this batch; or set on_error to "skip" to set such rows aside.'
        )


class NodeStartFailed(ElasticError):
    """A node cannot start, and neither could another one in its place; `why` is what the node said."""

    def __init__(self, node: str, why: str, attempts: int) -> None:
        self.node = node
        self.why = why
        self.attempts = attempts
        advice = "Correct what it says"
        if "ModuleNotFoundError" in why or "ImportError" in why:
            advice = "Install the package on every executor, or ship it with --py-files"
        elif "PYTHON_VERSION_MISMATCH" in why:
            advice = "Set PYSPARK_PYTHON to the same Python on the driver and on every executor"
        super().__init__(
            f"{node} failed to start {attempts} times in a row: {why.rstrip(' .')}. {advice}, and try again."
        )


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


class SparkLost(ElasticError):
    """Spark's JVM is gone, and with it the stream and the nodes; nothing that was committed is lost."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(
            f"Spark's JVM does not answer: {why}. Look for the reason in its log, as running out of memory, and start "
            "the job again in a new process: it goes on where it was."
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


class SinkFailed(ElasticError):
    """Results no longer reach their sink; the job itself goes on, and the results are kept."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(
            f"results of job {name!r} no longer reach the sink: {why.rstrip(' .')}. Correct the sink and start the job "
            "again: it delivers what the sink has missed."
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


class InvalidKey(ElasticError, ValueError):
    """A key of another type than the key columns have."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"the key does not fit the key columns: {why}. Give one value of its type for every column.")


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


def _listed(names: Iterable[object], most: int = 12) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _nearest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
