"""Every error of the engine: typed, with its values as attributes and a last sentence that says what to do.

ElasticError
├── InvalidJob (also a ValueError)     the job or one of its arguments is invalid; nothing was started
│   ├── UnknownColumn                  a key column is not in the rows
│   ├── UnsupportedKeyType             a key column has a type that cannot be hashed
│   ├── InvalidEventTime               the event-time column is not a timestamp
│   ├── NotAnOperator                  a class or another object in place of an operator
│   ├── InvalidProcessor               a stateful processor, or its use, is invalid, as on Spark
│   ├── UnsupportedProcessor           a stateful processor needs a feature that this engine lacks
│   ├── IndivisibleState               a stage is grouped by table, but its state belongs to the task
│   ├── InvalidProtectedKeys           the keys of a stage that are to have standbys cannot have any
│   ├── UnmergeableOperator            the keys of an operator are to be split, but its partials cannot be merged
│   ├── StatefulShuffle                rows of a stage should go to any task, but its operator has a state
│   ├── CombineDropsCostKey            the operator of a shuffled stage combines rows to rows without their cost key
│   ├── InvalidGraph                   inputs and stages do not form a valid graph
│   │   ├── UnknownSource              a stage reads a name that is neither an input nor a stage
│   │   ├── CyclicGraph                stages read each other in a cycle
│   │   ├── UnreachableStage           no input reaches a stage
│   │   ├── UnreadInput                no stage reads an input
│   │   └── SchemasDoNotFit            the rows of several sources cannot be rows of one stage
│   ├── UnserializableOperator         an operator cannot be pickled, so it cannot be sent to the nodes
│   ├── InvalidStore                   the store cannot hold the state of a job
│   ├── SparkConnectUnsupported        the session is one of Spark Connect
│   ├── SparkRefused                   Spark refuses its configuration, the source or an expression
│   ├── TooFewSlots                    Spark has too few task slots for the nodes and the senders
│   ├── SpeculationEnabled             Spark would run every node twice
│   ├── InvalidSetting                 a setting has an invalid value
│   ├── UnknownSetting                 there is no setting of that name
│   ├── MissingSecret                  there is no secret to sign state with, and none can be created
│   ├── ExposedSecret                  a secret is on a command line, where every local user can read it
│   └── MissingPackage                 a feature needs an optional package that is not installed
├── JobNameInUse                       a job of that name is running
├── IncompatibleRestart                the stored state belongs to another version of the job
│   ├── MissingUpgrade                 an operator has another version, and no method that upgrades the stored state
│   └── StateNewer                     a newer version of an operator has already run this job
├── UpgradeFailed                      the operator's upgrade of a stored state raised
├── JobExists                          state should be imported as a job that the store has already
├── InvalidExport                      exported files are damaged, forged or invalid
├── StateNotPortable                   the state of a stage cannot be exported, or not imported for these tasks or keys
├── CheckpointMismatch                 Spark's checkpoint and the stored state do not belong together
├── StreamFailed                       Spark's query failed in the source, a record or an expression
├── NullKey                            rows have no key, and null_keys is "fail"
├── RowTooLarge                        a row exceeds max_row_bytes
├── OperatorFailed                     the operator raised
├── CombineFailed                      the operator's combine or merge raised
├── DivisionFailed                     the operator's part or join raised
├── InvalidStateCall                   a stateful processor used a state or a timer as Spark does not allow it
├── InvalidOutput                      the operator emitted rows that do not match its declaration
├── NodeInUse                          a node that should be removed still owns tasks
├── PoisonedStep                       several processes in a row died in the same step
├── NodeStartFailed                    a node failed to start, repeatedly
├── NodeStartTimeout                   Spark did not start the nodes in time
├── SparkLost                          Spark's JVM is gone, and with it the stream and the nodes
├── StoreUnreachable                   the store was unavailable for longer than store_retry_seconds
├── SinkFailed                         the sink gets no more results; the job continues
├── ResultsExpired                     a reader asked for results that retention has deleted
├── InvalidRequest (also a ValueError) a scale request is invalid; nothing was started
│   ├── KeysCannotMove                 the keys of a stage cannot move, because it is not grouped by table
│   ├── KeysCannotBeSplit              the keys of a stage cannot be split, because there is no partial stage before it
│   ├── InvalidAutoscaling             an argument of the autoscaler is invalid
│   ├── UnknownPolicy                  there is no autoscaling policy of that name
│   └── KeysNotCounted                 the settings of the job say that the keys of a stage are not counted
├── AutoscalerRunning                  the job already has an autoscaler
├── MigrationInProgress                another migration of the job is in progress
├── MigrationFailed                    a migration failed; completed moves are kept
├── InvalidKey (also a ValueError)     a key does not match the types of the key columns
├── JobStopped                         the job is no longer running
├── StateUnavailable                   the state is moving or being restored; retry
├── QueryFailed                        the operator raised an exception when it was asked for a key
├── KeysNotMeasured                    a node has not measured its keys for a whole interval; retry
├── UnknownEvent                       the coordinator got an event that it has no handler for
└── IllegalTransition                  a protocol got an event that its phase does not allow

All errors cross process boundaries: pickled or copied, they keep their message and attributes.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class ElasticError(Exception):
    """Base of all errors that the engine raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the message alone, which constructors with attributes do not accept.
        return _restore, (type(self), self.args), self.__dict__


class InvalidJob(ElasticError, ValueError):
    """The job or one of its arguments is invalid; nothing was started."""


class UnknownColumn(InvalidJob):
    """A key column is not in the rows."""

    def __init__(self, column: str, known: Iterable[str]) -> None:
        self.column = column
        self.known = tuple(known)
        super().__init__(
            f"there is no column {column!r}; the rows have {_join(self.known)}."
            f"{_suggest(column, self.known)} Name one of these, or add the column to the stream."
        )


class UnsupportedKeyType(InvalidJob):
    """A key column has a type that cannot be hashed."""

    def __init__(self, column: str, kind: object) -> None:
        self.column = column
        self.kind = str(kind)
        super().__init__(
            f"column {column!r} of type {self.kind} cannot be a key: the type has no hash. Use booleans, numbers, "
            "strings, binaries, dates, timestamps or structs of these, or cast the column to a string."
        )


class InvalidEventTime(InvalidJob):
    """The event-time column is not a timestamp."""

    def __init__(self, column: str, kind: object) -> None:
        self.column = column
        self.kind = str(kind)
        super().__init__(
            f"event_time names column {column!r} of type {self.kind}, which is not a timestamp. "
            f"Use a timestamp column, or cast it with to_timestamp({column}) or timestamp_millis({column})."
        )


class NotAnOperator(InvalidJob):
    """A class or another object in place of an operator."""

    def __init__(self, given: object) -> None:
        self.given = given.__qualname__ if isinstance(given, type) else type(given).__name__
        what = "a class" if isinstance(given, type) else "not an operator"
        advice = f"an instance, {self.given}()" if isinstance(given, type) else "an instance of a subclass of Operator"
        super().__init__(f"operator={self.given} is {what}. Pass {advice}.")


class InvalidProcessor(InvalidJob):
    """A stateful processor, or its use, is invalid, as on Spark."""

    def __init__(self, processor: str, why: str) -> None:
        self.processor = processor
        self.why = why
        super().__init__(f"processor {processor}: {why}.")


class UnsupportedProcessor(InvalidJob):
    """A stateful processor needs a feature of Spark that this engine lacks."""

    def __init__(self, feature: str, advice: str) -> None:
        self.feature = feature
        self.advice = advice
        super().__init__(f"{feature} is not supported yet. {advice}.")


class IndivisibleState(InvalidJob):
    """A stage is grouped by table, but single keys cannot be taken out of its state."""

    def __init__(self, stage: str, operator: str, why: str) -> None:
        self.stage = stage
        self.operator = operator
        self.why = why
        super().__init__(
            f'stage {stage!r} cannot have grouping="table": {operator} cannot hand over single keys, since '
            f'{why}. Give it the methods part() and join(), write it as a KeyedOperator, or use grouping="hash".'
        )


class InvalidProtectedKeys(InvalidJob):
    """The keys of a stage that are to have standbys cannot have any."""

    def __init__(self, stage: str, why: str, advice: str) -> None:
        self.stage = stage
        self.why = why
        self.advice = advice
        super().__init__(f"the protected keys of stage {stage!r} are invalid: {why}. {advice}")


class UnmergeableOperator(InvalidJob):
    """The keys of an operator are to be split, but its partials cannot be merged."""

    def __init__(self, operator: str, obstacle: str) -> None:
        self.operator = operator
        self.obstacle = obstacle
        super().__init__(
            f"the keys of {operator} cannot be split: {obstacle}. Use it without partial(), or correct that: partial() "
            "needs a combine() from rows to partials and a merge() from partials to partials."
        )


class StatefulShuffle(InvalidJob):
    """Rows of a stage should go to any task, but its operator may have a state, which is by key."""

    def __init__(self, stage: str, operator: str) -> None:
        self.stage = stage
        self.operator = operator
        super().__init__(
            f'stage {stage!r} cannot be grouped by "shuffle": {operator} may have a state, and any task would get the '
            "rows of a key. Use stateless(function, schema) or a StatelessOperator, or group the stage by hash."
        )


class CombineDropsCostKey(InvalidJob):
    """The operator of a shuffled stage combines rows to rows without their cost key, by which nodes are chosen."""

    def __init__(self, stage: str, cost_key: Iterable[str], reason: str) -> None:
        self.stage = stage
        self.cost_key = tuple(cost_key)
        self.reason = reason
        super().__init__(
            f"stage {stage!r} cannot be shuffled by the cost key {_join(self.cost_key)}: {reason}. Correct "
            "combine to keep these columns and types, also of a table without rows, or choose a cost_key that it keeps."
        )


class InvalidGraph(InvalidJob):
    """Inputs and stages do not form a graph that a job can run."""


class UnknownSource(InvalidGraph):
    """A stage reads a name that is neither an input nor a stage."""

    def __init__(self, stage: str, source: str, known: Iterable[str]) -> None:
        self.stage = stage
        self.source = source
        self.known = tuple(known)
        super().__init__(
            f"stage {stage!r} reads {source!r}, which is neither an input nor a stage; there are {_join(self.known)}."
            f"{_suggest(source, self.known)} Name one of these in inputs=."
        )


class CyclicGraph(InvalidGraph):
    """Stages read each other in a cycle."""

    def __init__(self, stages: Iterable[str]) -> None:
        self.stages = tuple(stages)
        way = " -> ".join([*self.stages, self.stages[0]])
        super().__init__(
            f"stages read each other in a cycle: {way}. Name fewer of them in inputs=; an operator that needs its "
            "own rows again emits them with ToSelf."
        )


class UnreachableStage(InvalidGraph):
    """No input reaches a stage."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        super().__init__(f"stage {stage!r} reads nothing that an input reaches. Name an input or a stage in inputs=.")


class UnreadInput(InvalidGraph):
    """No stage reads an input."""

    def __init__(self, name: str, stages: Iterable[str]) -> None:
        self.name = name
        self.stages = tuple(stages)
        super().__init__(
            f"no stage reads input {name!r}. Name it in inputs= of one of {_join(self.stages)}, or leave it out."
        )


class SchemasDoNotFit(InvalidGraph):
    """The rows of several sources cannot be rows of one stage."""

    def __init__(self, stage: str, why: str, advice: str) -> None:
        self.stage = stage
        self.why = why
        super().__init__(f"the rows that stage {stage!r} reads do not fit together: {why}. {advice}.")


class UnserializableOperator(InvalidJob):
    """An operator cannot be pickled, so it cannot be sent to the nodes."""

    def __init__(self, operator: str, cause: BaseException | str) -> None:
        self.operator = operator
        self.cause = cause if isinstance(cause, str) else format_error(cause)
        super().__init__(
            f"operator {operator!r} cannot be pickled: {self.cause}. "
            "Open connections, locks and files in its open(), not in __init__."
        )


class InvalidStore(InvalidJob):
    """The store cannot hold the state of a job. The message omits its URL, which may contain credentials."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(
            f"the store cannot hold the state of a job: {why.rstrip('.')}. "
            "Use a URL that the driver and all executors can reach, such as file:///folder or s3://bucket/prefix."
        )


class SparkConnectUnsupported(InvalidJob):
    """The session is one of Spark Connect, which has no SparkContext in this process."""

    def __init__(self) -> None:
        super().__init__(
            "Spark Connect is not supported: nodes need the driver's SparkContext. "
            "Use a classic session, such as elastic.local_session() or spark-submit."
        )


class TooFewSlots(InvalidJob):
    """Spark has too few task slots for the nodes and the senders; nothing was started."""

    def __init__(self, nodes: int, slots: int, needed: int, master: str, spares: int = 0) -> None:
        self.nodes = nodes
        self.slots = slots
        self.needed = needed
        self.master = master
        self.spares = spares
        also = f" and {spares} {'spare' if spares == 1 else 'spares'}" if spares else ""
        super().__init__(
            f"{nodes} nodes{also} need {needed} task slots, including those of other jobs and of the senders, but "
            f"{master!r} has {slots}. Use at most {max(0, nodes - (needed - slots))} nodes"
            f"{', fewer spares' if spares else ''}, or give Spark more cores"
            f"{f', such as local[{needed}]' if master.startswith('local') else ''}."
        )


class SpeculationEnabled(InvalidJob):
    """Spark would start a second copy of every node, since nodes run long."""

    def __init__(self) -> None:
        super().__init__(
            "spark.speculation is enabled, so Spark would run every node twice. Set spark.speculation to false."
        )


class InvalidSetting(InvalidJob):
    """A setting has an invalid value."""

    def __init__(self, name: str, value: object, why: str) -> None:
        self.name = name
        self.value = value
        self.why = why
        super().__init__(f"invalid setting {name}={value!r}: {why}. Correct it, or omit it to use the default.")


class UnknownSetting(InvalidJob):
    """There is no setting of that name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(
            f"there is no setting {name!r}.{_suggest(name, self.known)} Use one of {_join(self.known, 40)}."
        )


class MissingSecret(InvalidJob):
    """There is no secret to sign state with, and none can be created."""

    def __init__(self, where: str, why: str) -> None:
        self.where = where
        self.why = why
        super().__init__(
            f"no secret to sign state with: {where}: {why}. Set ELASTIC_SECRET to the same value for every run."
        )


class ExposedSecret(InvalidJob):
    """A secret is on a command line, which every local user can read in the process list."""

    def __init__(self, where: str, name: str, advice: str) -> None:
        self.where = where
        self.name = name
        self.advice = advice
        super().__init__(
            f"{where} {name}=... puts a secret on the command line, which every user of this machine can read in the "
            f"process list. {advice}"
        )


class MissingPackage(InvalidJob):
    """A feature needs an optional package that is not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        self.feature = feature
        self.package = package
        self.extra = extra
        super().__init__(
            f"{feature} needs the package {package!r}, which is not installed here. "
            f"Run: pip install 'spark-elastic[{extra}]'"
        )


class JobNameInUse(ElasticError):
    """A job of that name is running."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"a job named {name!r} is already running. Stop it first, or choose another name.")


class IncompatibleRestart(ElasticError):
    """The stored state belongs to another version of the job."""

    def __init__(self, name: str, what: str, before: object, now: object) -> None:
        self.name = name
        self.what = what
        self.before = before
        self.now = now
        super().__init__(
            f"the stored state of job {name!r} has {what} {before!r}, but the job was started with {now!r}. "
            "Start it with the stored value, or under another name to begin with empty state."
        )


class MissingUpgrade(IncompatibleRestart):
    """The operator of a stage has another version than its stored state, and no method that upgrades it."""

    def __init__(self, name: str, stage: str, operator: str, before: str, now: str) -> None:
        self.name = name
        self.stage = stage
        self.operator = operator
        self.what = f"version of stage {stage!r}"
        self.before = before
        self.now = now
        ElasticError.__init__(
            self,
            f"the stored state of job {name!r} has version {before!r} in stage {stage!r}, but {operator} has version "
            f"{now!r}. Give {operator} a method upgrade(old_version, value) that returns the value in the new form, "
            "start it with the stored version, or under another name to begin with empty state.",
        )


class StateNewer(IncompatibleRestart):
    """A newer version of an operator has taken the stored state over, so an older one cannot read it any more."""

    def __init__(self, name: str, stage: str, operator: str, before: str, now: str) -> None:
        self.name = name
        self.stage = stage
        self.operator = operator
        self.what = f"version of stage {stage!r}"
        self.before = before
        self.now = now
        ElasticError.__init__(
            self,
            f"version {before!r} of {operator} has taken over the stored state of stage {stage!r} of job {name!r}, and "
            f"version {now!r} is older: it cannot read the state. Start the job with version {before!r}, or with a "
            "later one that can upgrade it.",
        )


class UpgradeFailed(ElasticError):
    """The operator's upgrade of a stored state raised; `cause_text` is the traceback, `key` None for a whole unit."""

    def __init__(
        self, operator: str, unit: str, before: str, now: str, cause_text: str, key: str | None = None
    ) -> None:
        self.operator = operator
        self.unit = unit
        self.key = key
        self.before = before
        self.now = now
        self.cause_text = cause_text
        whose = unit if key is None else f"key {key} in {unit}"
        super().__init__(
            f"operator {operator!r} failed to upgrade the state of {whose} from version {before!r} to {now!r}:\n"
            f"{cause_text.rstrip()}\nCorrect its upgrade() and restart the job: the stored state is unchanged."
        )


class JobExists(ElasticError):
    """State should be imported as a job that the store has already; nothing was changed."""

    def __init__(self, name: str, store: str, *, is_same: bool = False) -> None:
        self.name = name
        self.store = store
        self.is_same = is_same
        advice = (
            "It has the state of this very export and has not run since, so there is nothing left to do. Start it."
            if is_same
            else "Import under another name."
        )
        super().__init__(f"{store} has a job named {name!r} already. {advice}")


class InvalidExport(ElasticError):
    """Exported files are damaged, forged, or not what they should be; nothing was imported."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path} cannot be imported: {why.rstrip('.')}. Export the job again, or correct the files.")


class StateNotPortable(ElasticError):
    """The state of a stage cannot be exported, or not imported for these tasks or keys; nothing was imported."""

    def __init__(self, stage: str, why: str) -> None:
        self.stage = stage
        self.why = why
        super().__init__(f"the state of stage {stage!r} cannot be moved like this: {why.rstrip('.')}.")


class CheckpointMismatch(ElasticError):
    """Spark's checkpoint and the stored state do not belong together: continuing would lose or repeat batches.

    Spark sends `next_batch` next; the stored state includes all batches through `last_batch`.
    """

    def __init__(self, name: str, next_batch: int, last_batch: int) -> None:
        self.name = name
        self.next_batch = next_batch
        self.last_batch = last_batch
        if next_batch == last_batch:
            consequence = "its source offsets differ from those of the stored batch, so its rows would be skipped"
        elif next_batch > last_batch:
            consequence = "the batches in between would be lost"
        else:
            consequence = "its rows would be skipped as a replay"
        super().__init__(
            f"job {name!r}: Spark's checkpoint continues with batch {next_batch}, but the stored state ends with batch "
            f"{last_batch}: {consequence}. Restore the checkpoint that belongs to the store, or start the job under "
            "another name with a new checkpoint."
        )


class SparkRefused(InvalidJob):
    """Spark refuses its configuration, the source or an expression; `reason` is the innermost cause."""

    def __init__(self, step: str, reason: str, advice: str) -> None:
        self.step = step
        self.reason = reason
        super().__init__(f"Spark could not {step}: {reason}. {advice}")


class StreamFailed(ElasticError):
    """Spark's query failed; `reason` is the innermost cause, and the log has the full text."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(
            f"the stream of job {name!r} failed: {reason}. Correct the source, the record or the expression, and "
            "restart the job: it continues with the same batch."
        )


class NullKey(ElasticError):
    """Rows have no key, and null_keys is "fail"; the batch was not committed."""

    def __init__(self, column: str, rows: int, batch: int) -> None:
        self.column = column
        self.rows = rows
        self.batch = batch
        super().__init__(
            f"{rows} rows of batch {batch} have no value in the key column {column!r}. "
            'Filter them out, or set null_keys to "keep" or "drop".'
        )


class RowTooLarge(ElasticError):
    """A row exceeds max_row_bytes; the batch was not committed."""

    def __init__(self, size: int, limit: int, batch: int) -> None:
        self.size = size
        self.limit = limit
        self.batch = batch
        super().__init__(
            f"a row of batch {batch} has {size:,} bytes, more than the limit of {limit:,}. "
            "Store such values elsewhere and send references, or raise max_row_bytes."
        )


class OperatorFailed(ElasticError):
    """The operator raised; `cause_text` is the traceback, `row` the first row of its input if known."""

    def __init__(self, operator: str, task: int, batch: int, cause_text: str, row: str | None = None) -> None:
        self.operator = operator
        self.task = task
        self.batch = batch
        self.cause_text = cause_text
        self.row = row
        first_row = f"\nFirst row of its input: {row}" if row is not None else ""
        super().__init__(
            f"operator {operator!r} failed on task {task} in batch {batch}:\n{cause_text.rstrip()}{first_row}\n"
            'Correct the operator and restart the job, or set on_error to "skip" to quarantine such rows.'
        )


class CombineFailed(ElasticError):
    """The operator's combine, or `method`, raised; `cause_text` is the traceback."""

    def __init__(self, operator: str, cause_text: str, method: str = "combine") -> None:
        self.operator = operator
        self.cause_text = cause_text
        self.method = method
        super().__init__(
            f"operator {operator!r} failed to {method} rows:\n{cause_text.rstrip()}\n"
            f"Correct its {method}() and restart the job: it continues with the same batch."
        )


class DivisionFailed(ElasticError):
    """The operator's part or join raised; `cause_text` is the traceback."""

    def __init__(self, operator: str, method: str, cause_text: str) -> None:
        self.operator = operator
        self.method = method
        self.cause_text = cause_text
        super().__init__(
            f"operator {operator!r} failed to move keys between units, in {method}():\n{cause_text.rstrip()}\n"
            f"Correct its {method}() and restart the job: it continues with the same batch."
        )


class InvalidStateCall(ElasticError):
    """A stateful processor used a state or a timer as Spark does not allow it."""

    def __init__(self, subject: str, why: str) -> None:
        self.subject = subject
        self.why = why
        super().__init__(f"{subject!r}: {why}. Correct the processor.")


class InvalidOutput(ElasticError):
    """The operator emitted rows that do not match its declaration."""

    def __init__(self, operator: str, why: str) -> None:
        self.operator = operator
        self.why = why
        super().__init__(
            f"operator {operator!r} emitted invalid rows: {why}. Emit what output_schema and emits declare, or change "
            "the declaration."
        )


class NodeInUse(ElasticError):
    """A node that should be removed still owns tasks; it was not removed."""

    def __init__(self, node: str, tasks: Iterable[int]) -> None:
        self.node = node
        self.tasks = tuple(tasks)
        super().__init__(
            f"node {node!r} cannot be removed: it still owns tasks {_join(self.tasks)}. "
            "Move these tasks to other nodes first, with job.scale() or job.rebalance()."
        )


class PoisonedStep(ElasticError):
    """Several processes in a row died in the same step, so the next one would too.

    `tasks` are those that the last process was working on, `reason` is why it was lost.
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
            f"{deaths} processes of {node} died one after another in the same step: batch {batch}, round {round_}, "
            f"task{'' if len(self.tasks) == 1 else 's'} {listed}. Last failure: {reason}. A row of this batch probably "
            "crashes native code of the operator, exceeds the executor's memory, or never finishes. Check the executor "
            "log, correct the operator or give it more memory, and restart the job: it continues with this batch; or "
            'set on_error to "skip" to quarantine such rows.'
        )


class NodeStartFailed(ElasticError):
    """A node failed to start, repeatedly, and a replacement would fail too; `why` is the node's own message."""

    def __init__(self, node: str, why: str, attempts: int) -> None:
        self.node = node
        self.why = why
        self.attempts = attempts
        advice = "Correct the cause"
        if "ModuleNotFoundError" in why or "ImportError" in why:
            advice = "Install the package on every executor, or ship it with --py-files"
        elif "PYTHON_VERSION_MISMATCH" in why:
            advice = "Set PYSPARK_PYTHON to the same Python on the driver and on every executor"
        super().__init__(
            f"{node} failed to start {attempts} times in a row: {why.rstrip(' .')}. {advice}, and try again."
        )


class NodeStartTimeout(ElasticError):
    """Spark did not start the nodes in time."""

    def __init__(self, started: int, wanted: int, seconds: float) -> None:
        self.started = started
        self.wanted = wanted
        self.seconds = seconds
        super().__init__(
            f"timed out after {seconds:g} s: only {started} of {wanted} nodes have started. Free some task slots or "
            "add executors; raise node_start_seconds if executors take longer to start."
        )


class SparkLost(ElasticError):
    """Spark's JVM is gone, and with it the stream and the nodes; no committed batch is lost."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(
            f"Spark's JVM does not respond: {why}. Check its log for the cause, such as running out of memory, and "
            "restart the job in a new process: it continues after the last committed batch."
        )


class StoreUnreachable(ElasticError):
    """The store was unavailable for longer than store_retry_seconds; no committed batch is lost."""

    def __init__(self, seconds: float, why: str = "") -> None:
        self.seconds = seconds
        self.why = why
        super().__init__(
            f"the store was unavailable for {seconds:g} s{f' ({why})' if why else ''}. Restore it and restart the job: "
            "it continues after the last committed batch. Raise store_retry_seconds to wait longer."
        )


class SinkFailed(ElasticError):
    """The sink gets no more results; the job continues, and the results are kept."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(
            f"the sink of job {name!r} gets no more results: {why.rstrip(' .')}. Correct the sink and restart the job: "
            "it delivers the missing results."
        )


class ResultsExpired(ElasticError):
    """A reader asked for results that retention has deleted."""

    def __init__(self, wanted: int, oldest: int) -> None:
        self.wanted = wanted
        self.oldest = oldest
        super().__init__(
            f"the results of batch {wanted} have expired; the oldest batch kept is {oldest}. Start the reader again "
            f"from batch {oldest}, and raise retain_result_batches so that readers may lag that far behind."
        )


class InvalidRequest(ElasticError, ValueError):
    """A scale request is invalid; nothing was started."""


class InvalidAutoscaling(InvalidRequest):
    """An argument of the autoscaler is invalid; nothing was started."""

    def __init__(self, name: str, value: object, why: str) -> None:
        self.name = name
        self.value = value
        self.why = why
        super().__init__(f"invalid autoscaling argument {name}={value!r}: {why}. Correct it, or omit it.")


class UnknownPolicy(InvalidRequest):
    """There is no autoscaling policy of that name."""

    def __init__(self, policy: object, known: Iterable[str]) -> None:
        self.policy = str(policy)
        self.known = tuple(known)
        super().__init__(
            f"there is no policy {self.policy!r}.{_suggest(self.policy, self.known)} Use one of {_join(self.known)}, "
            "or an object with a method decide(observation)."
        )


class KeysCannotMove(InvalidRequest):
    """The stage whose keys should move is not grouped by table, or it is not clear which stage is meant."""

    def __init__(self, stage: str | None, tables: Iterable[str] = ()) -> None:
        self.stage = stage
        self.tables = tuple(tables)
        if stage is None and self.tables:
            super().__init__(f"{len(self.tables)} stages are grouped by table. Name one of {', '.join(self.tables)}.")
        else:
            which = "no stage of this job is" if stage is None else f"stage {stage!r} is not"
            super().__init__(f'{which} grouped by table, so no key can move. Use Stage(..., grouping="table").')


class KeysCannotBeSplit(InvalidRequest):
    """The keys of a stage cannot be split: there is no partial stage before it, or several and none is named."""

    def __init__(self, stage: str | None, splittable: Iterable[str] = ()) -> None:
        self.stage = stage
        self.splittable = tuple(splittable)
        which = "the keys of this job" if stage is None else f"the keys of stage {stage!r}"
        remedy = f"Name one of {_join(self.splittable)}." if self.splittable else "Use partial(...) for its operator."
        super().__init__(f"{which} cannot be split. {remedy}")


class KeysNotCounted(InvalidRequest):
    """The settings of the job say that the keys of these stages are not counted."""

    def __init__(self, stages: Iterable[str]) -> None:
        self.stages = tuple(stages)
        super().__init__(
            f"the keys of {_join(self.stages)} are not counted. Restart the job with key_statistics='all'; the default "
            "'table' counts those of stages that are grouped by table."
        )


class AutoscalerRunning(ElasticError):
    """The job already has an autoscaler."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"job {name!r} already has an autoscaler. Stop that autoscaler first.")


class MigrationInProgress(ElasticError):
    """Another migration of the job is in progress."""

    def __init__(self) -> None:
        super().__init__("another migration is in progress. Wait for it, cancel it, or, in Python, pass queue=True.")


class MigrationFailed(ElasticError):
    """A migration failed; completed moves are kept, all other tasks are where they were."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"the migration failed: {why} Check its event history, and repeat the request.")


class InvalidKey(ElasticError, ValueError):
    """A key does not match the types of the key columns."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(
            f"the key does not match the key columns: {why}. Give one value of the right type for every column."
        )


class JobStopped(ElasticError):
    """The job is no longer running."""

    def __init__(self, name: str, why: str = "") -> None:
        self.name = name
        self.why = why
        super().__init__(f"job {name!r} has stopped{f': {why}' if why else ''}. Restart it.")


class StateUnavailable(ElasticError):
    """The state of a task is moving or being restored."""

    def __init__(self, task: int, node: str | None) -> None:
        self.task = task
        self.node = node
        where = f"node {node!r} does not have it yet" if node is not None else "no node has it now"
        super().__init__(f"the state of task {task} cannot be read: {where}. Retry in a moment.")


class QueryFailed(ElasticError):
    """The operator raised an exception in `lookup`."""

    def __init__(self, stage: str, cause: str) -> None:
        self.stage = stage
        self.cause = cause
        super().__init__(
            f"the operator of stage {stage!r} failed to answer a query of a key: {cause}. The job continues. Correct "
            "the operator's method lookup."
        )


class KeysNotMeasured(ElasticError):
    """Some nodes have not reported the keys of a stage: since they started or since state moved no interval is over."""

    def __init__(self, stage: int | str, nodes: Iterable[str] = ()) -> None:
        self.stage = stage
        self.nodes = tuple(nodes)
        which = f"by {_join(self.nodes)} " if self.nodes else ""
        super().__init__(
            f"the keys of stage {stage!r} have not been measured {which}since nodes started or since keys or tasks "
            "moved. Retry when the stream has run for key_interval_seconds."
        )


def _restore(kind: type[ElasticError], args: tuple[Any, ...]) -> ElasticError:
    return kind.__new__(kind, *args)


def format_error(cause: BaseException) -> str:
    """Return the type and the message of an exception in one line."""
    return f"{type(cause).__name__}: {cause}"


def _join(names: Iterable[object], limit: int = 12) -> str:
    names = list(names)
    joined = ", ".join(repr(name) for name in names[:limit])
    return joined + (f" and {len(names) - limit} more" if len(names) > limit else "")


def _suggest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


class UnknownEvent(ElasticError):
    """The coordinator got an event that it has no handler for."""

    def __init__(self, event: object) -> None:
        self.kind = type(event).__name__
        super().__init__(f"the coordinator has no handler for {self.kind}: {event}. Report this as a bug.")


class IllegalTransition(ElasticError):
    """An event has no row in the table of a protocol for the phase that it meets."""

    def __init__(self, phase: str, event: str, subject: str = "a hand-over") -> None:
        self.phase, self.event, self.subject = str(phase), str(event), subject
        super().__init__(f"{subject} in phase {phase} cannot handle {str(event)!r}. Report this as a bug.")
