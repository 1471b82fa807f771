"""Pipelines: operators with their keys, what each of them reads, and the schemas between them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from elastic.durations import parse_duration_ms
from elastic.errors import InvalidJob, NotAnOperator, StatefulShuffle
from elastic.numbers import as_int
from elastic.operators.divide import check_divisible
from elastic.operators.graph import DEFAULT_INPUT, InputSpec, Source, connect, order_stages, to_input_specs
from elastic.operators.graph.clocks import ClockedStage, derive_clocks
from elastic.operators.keyed import KeyedOperator
from elastic.operators.operator import Operator
from elastic.operators.partial import (
    EVERY_BATCH,
    PartialOperator,
    check_mergeable,
    check_partial_stage,
    parse_every,
)
from elastic.operators.protected_keys import check_protected_keys
from elastic.operators.schemas import to_schema
from elastic.operators.stage_runner import Follower, StageRunner
from elastic.routing.groupings import (
    PartialGrouping,
    ShuffleGrouping,
    TableGrouping,
    check_splits,
    parse_grouping,
    with_scheduler,
)

# Names of inputs and stages, or a mapping from each to the columns that become the key of the stage.
Reads: TypeAlias = str | Sequence[Any] | Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class Stage:
    """One operator of a pipeline.

    Without a key of its own it has the job's key; without a name, the operator's `name` or class names it. `inputs`
    are the names of the inputs and stages that it reads; by default it reads the stage before it, and the first one all
    inputs. Rows of several have the column `input` with the name of what they come from. Where their key columns have
    other names than those of the stage, `inputs` is a mapping from each name to its key columns. The grouping
    says how rows find their unit of state: by "hash", or by hash and a "table" of single keys (see `elastic.routing`).
    `partial` makes stages whose keys are split.

    Any task of a stage with the grouping "shuffle" may take any row; it has no state and needs no key. The `scheduler`
    chooses: "posg" (the default) and "posg-batch" the node that will be done with the row first, by what rows with the
    same columns `cost_key` took so far (by default the key), "round-robin" each node in turn.

    `standbys` is the number of nodes that follow each unit, to take over when its node is lost; None is the setting of
    that name. The `protected_keys` of a stage with the grouping "table" have a standby in any case: they live among the
    guests of tasks, and only these are followed where `standbys` is 0. A key of several columns is a tuple.
    `output_delay`, such as "0 seconds", is how far event times of the rows that it emits lie behind its watermark at
    most; by default what the operator declares.
    """

    operator: Operator
    key: tuple[str, ...]
    name: str
    grouping: str
    cost_key: tuple[str, ...]
    standbys: int | None
    protected_keys: tuple[Any, ...]
    inputs: tuple[tuple[str, tuple[str, ...]], ...]  # each with the columns that become the key; () if it has its names
    output_delay: str | None

    def __init__(
        self,
        operator: Operator,
        key: str | Sequence[str] = (),
        name: str = "",
        *,
        grouping: str = "hash",
        scheduler: str | None = None,
        cost_key: str | Sequence[str] = (),
        standbys: int | None = None,
        protected_keys: Iterable[Any] = (),
        inputs: Reads = (),
        output_delay: str | None = None,
    ) -> None:
        if standbys is not None and (as_int(standbys) is None or standbys < 0):
            raise InvalidJob(f"standbys={standbys!r} is invalid. Give the number of copies of each unit, 0 or more.")
        declared = parse_grouping(with_scheduler(grouping, scheduler))
        check_partial_stage(operator, declared, name or _name(operator))
        check_shuffled_stage(operator, declared, name or _name(operator), to_key_columns(cost_key))
        object.__setattr__(self, "operator", operator)
        object.__setattr__(self, "key", to_key_columns(key))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "grouping", with_scheduler(grouping, scheduler))
        object.__setattr__(self, "cost_key", to_key_columns(cost_key))
        object.__setattr__(self, "standbys", standbys)
        is_stateless = bool(getattr(operator, "stateless", False))
        protected = check_protected_keys(protected_keys, grouping, name or _name(operator), stateless=is_stateless)
        object.__setattr__(self, "protected_keys", protected)
        object.__setattr__(self, "inputs", _to_reads(inputs, name or _name(operator)))
        if output_delay is not None:
            parse_duration_ms(output_delay, "output_delay")
        object.__setattr__(self, "output_delay", output_delay)

    @property
    def output_delay_ms(self) -> int:
        """Maximum delay of the event times of emitted rows behind the watermark of the stage."""
        if self.output_delay is None:
            return self.operator.output_delay_ms
        return parse_duration_ms(self.output_delay, "output_delay")

    def __repr__(self) -> str:
        """One line, with what differs from the defaults."""
        key = self.key[0] if len(self.key) == 1 else self.key
        options: dict[str, Any] = {"key": key, "name": self.name, "cost_key": self.cost_key, "standbys": self.standbys}
        if self.inputs:
            options["inputs"] = [source for source, _ in self.inputs]
        if self.grouping != "hash":
            options["grouping"] = self.grouping
        given = [f", {name}={value!r}" for name, value in options.items() if value not in ((), "", None)]
        return f"Stage({self.operator!r}{''.join(given)})"


def partial(operator: Operator | Stage, every: str = EVERY_BATCH, *, split: str = "all") -> tuple[Stage, Stage]:
    """Return two stages: one that any task may take rows of, so that a key can be split, and the operator behind it.

    The operator has `combine` and `merge`. Tasks of the partial stage emit what they hold `every` "1 batch", or at the
    end of every interval of processing time such as "10 seconds". `split` says which keys may be in several tasks:

    - "all": every key in two, and keys of the head in one on every node,
    - "head": keys of the head only,
    - "none": no key until `Job.split` changes that.

    Use the result as the operator of a job, or within a longer pipeline as `[..., *partial(operator), ...]`.
    """
    stage = operator if isinstance(operator, Stage) else Stage(operator)
    check_mergeable(stage.operator)
    check_splits(split)
    grouping = f"{PartialGrouping.kind}:{split}"
    first = PartialOperator(stage.operator, parse_every(every))
    name = f"partial-{stage.name}" if stage.name else ""
    before = Stage(first, stage.key, name, grouping=grouping, standbys=stage.standbys, inputs=stage.inputs)
    return before, replace(stage, inputs=())


def to_key_columns(key: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of the key columns, given as one string or several; raises `InvalidJob` for anything else."""
    names = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, Iterable) else (key,)
    for name in names:
        if not isinstance(name, str):
            raise InvalidJob(f"a key column is named by a string, but {name!r} was given. Give a name or several.")
    return names


def build_stages(
    pipeline: Operator | Stage | Sequence[Operator | Stage], key: str | Sequence[str], inputs: Sequence[str] = ()
) -> tuple[Stage, ...]:
    """Return the stages of a pipeline, each with a key and a unique name, in the order of their numbers.

    `inputs` are the names of the inputs; none are needed for a chain. Raises an `InvalidGraph` if the names that stages
    read are no graph.
    """
    given = list(pipeline) if isinstance(pipeline, Sequence) else [pipeline]
    if not given:
        raise InvalidJob("the pipeline has no operators. Give at least one.")
    default_key = to_key_columns(key)
    stages: list[Stage] = []
    for item in given:
        stage = item if isinstance(item, Stage) else Stage(item)
        if not isinstance(stage.operator, Operator):
            raise NotAnOperator(stage.operator)
        taken = {other.name for other in stages} | {one.name for one in given if isinstance(one, Stage) and one.inputs}
        name = stage.name or _find_unused(_name(stage.operator), taken | set(inputs))
        if name in {other.name for other in stages}:
            raise InvalidJob(f"two stages are named {name!r}. Give each stage a unique name.")
        stages.append(replace(stage, key=stage.key or default_key, name=name))
    if any(stage.inputs for stage in stages):
        if clashing := sorted({stage.name for stage in stages}.intersection(inputs)):
            raise InvalidJob(f"a stage and an input are named {clashing[0]!r}. Give each a unique name.")
        stages = _order(stages, inputs or (DEFAULT_INPUT,))
    _check_pairs(stages)
    return tuple(stages)


def distinct_inputs(stages: Sequence[Stage], inputs: Sequence[InputSpec]) -> tuple[InputSpec, ...]:
    """Return the inputs; the only one has another name where a stage has the name that it has by default."""
    names = {stage.name for stage in stages}
    if len(inputs) == 1 and inputs[0].name in names and not any(stage.inputs for stage in stages):
        return (replace(inputs[0], name=_find_unused(DEFAULT_INPUT, names)),)
    if clashing := sorted(names.intersection(spec.name for spec in inputs)):
        raise InvalidJob(f"a stage and an input are named {clashing[0]!r}. Give each a unique name.")
    return tuple(inputs)


def find_sources(stages: Sequence[Stage], inputs: Sequence[str]) -> list[tuple[tuple[str, tuple[str, ...]], ...]]:
    """Return by stage what it reads: names of inputs and stages, each with the columns that become the key.

    A stage that does not say so reads the one before it; the first one reads all inputs.
    """
    found = []
    for number, stage in enumerate(stages):
        before = [stages[number - 1].name] if number else inputs
        found.append(stage.inputs or tuple((name, ()) for name in before))
    return found


def check_shuffled_stage(operator: Operator, grouping: object, name: str, cost_key: tuple[str, ...]) -> None:
    """Raise `StatefulShuffle` or `InvalidJob` if any task cannot take any row of a stage that says so."""
    is_shuffled = isinstance(grouping, ShuffleGrouping)
    if is_shuffled and not isinstance(operator, Operator):
        raise NotAnOperator(operator)
    if is_shuffled and (not operator.stateless or isinstance(operator, KeyedOperator) or _makes_state(operator)):
        raise StatefulShuffle(name, type(operator).__name__)
    if cost_key and not is_shuffled:
        raise InvalidJob(
            f"stage {name!r} has a cost key, but is grouped by {getattr(grouping, 'kind', grouping)!r}. "
            'Use grouping="shuffle", or leave the cost key out.'
        )


def _makes_state(operator: Operator) -> bool:
    """Whether an operator that says it is stateless defines a state to begin with."""
    return type(operator).initial_state is not Operator.initial_state


def _order(stages: Sequence[Stage], inputs: Sequence[str]) -> list[Stage]:
    """Return the stages so that each comes after those that it reads, and says what it reads."""
    explicit = [
        replace(stage, inputs=sources) for stage, sources in zip(stages, find_sources(stages, inputs), strict=True)
    ]
    by_name = {stage.name: stage for stage in explicit}
    order = order_stages(inputs, {stage.name: [name for name, _ in stage.inputs] for stage in explicit})
    return [by_name[name] for name in order]


def find_behind(sources: Sequence[Sequence[str]], names: Sequence[str], stage: int) -> list[int]:
    """Return the numbers of the stages that read a stage, from the names of the stages and of what each reads."""
    return [number for number, read in enumerate(sources) if names[stage] in read]


def _check_pairs(stages: Sequence[Stage]) -> None:
    """Raise `InvalidJob` if a partial stage is not followed by its operator alone, with the same key."""
    sources = [[name for name, _ in read] for read in find_sources(stages, ())]
    names = [stage.name for stage in stages]
    for number, stage in enumerate(stages):
        if not isinstance(stage.operator, PartialOperator):
            continue
        behind = find_behind(sources, names, number)
        following = stages[behind[0]] if len(behind) == 1 and sources[behind[0]] == [stage.name] else None
        if following is None or following.operator is not stage.operator.operator or following.key != stage.key:
            raise InvalidJob(
                f"the partial stage {stage.name!r} must be followed by its own operator, with the same key. "
                "Use both stages that partial() returns, one after the other."
            )


def build_runners(
    stages: Sequence[Stage],
    inputs: pa.Schema | Sequence[InputSpec],
    on_error: Literal["fail", "skip"] = "fail",
    first_versions: Sequence[str | None] = (),
) -> tuple[StageRunner, ...]:
    """Return a runner for each stage; the rows that a stage emits to the next are its input.

    A schema stands for the only input. `first_versions` are those of the operators by stage that stored states which do
    not name theirs. Raises `IndivisibleState` for a stage that is grouped by table although its state belongs to the
    task, and `SchemasDoNotFit` if a stage cannot read what it should.
    """
    specs = distinct_inputs(stages, to_input_specs(inputs))
    sources = find_sources(stages, [spec.name for spec in specs])
    names = [stage.name for stage in stages]
    read = [[name for name, _ in edges] for edges in sources]
    known = {spec.name: Source(spec.name, spec.schema, (), spec.key) for spec in specs}
    runners: list[StageRunner] = []
    for number, stage in enumerate(stages):
        found = [replace(known[name], key=key) for name, key in sources[number]]
        input_schema, feeds = connect(stage.name, stage.key, found)
        before = [runner for runner in runners if runner.name in read[number]]
        gets_partials = len(before) == 1 and isinstance(before[0].operator, PartialOperator)
        # An operator behind a partial stage is bound to the rows that the partials stand for.
        rows_schema = before[0].input_schema if gets_partials else input_schema
        is_last = not find_behind(read, names, number)
        next_schema = None if is_last else _schema_for_next(stage, rows_schema)
        runner = StageRunner(
            stage.operator,
            key=stage.key,
            grouping=stage.grouping,
            cost_key=stage.cost_key,
            input_schema=input_schema,
            next_schema=next_schema,
            on_error=on_error,
            stage=number,
            name=stage.name,
            rows_schema=rows_schema if gets_partials else None,
            first_version=first_versions[number] if first_versions else None,
            feeds=feeds,
        )
        if stage.grouping == TableGrouping.kind:
            check_divisible(runner.operator, stage.name)
        runners.append(runner)
        if next_schema is not None:
            known[stage.name] = Source(stage.name, next_schema)
    _follow(runners, stages, specs, read)
    return tuple(runners)


def _follow(
    runners: Sequence[StageRunner], stages: Sequence[Stage], specs: Sequence[InputSpec], read: Sequence[Sequence[str]]
) -> None:
    """Tell each runner which stages follow it, and what its clock is."""
    names = [runner.name for runner in runners]
    # The only input may have a watermark that earlier versions did not describe.
    is_timed = [spec.event_time is not None or len(specs) == 1 for spec in specs]
    numbers = {spec.name: number for number, spec in enumerate(specs) if is_timed[number]}
    clocked = []
    for number, (runner, stage) in enumerate(zip(runners, stages, strict=True)):
        behind = find_behind(read, names, number)
        runner.follow({names[other]: Follower(other, runners[other].feed_from(runner.name)) for other in behind})
        inputs = tuple(numbers[name] for name in read[number] if name in numbers)
        before = tuple(names.index(name) for name in read[number] if name in names)
        delay_ms = runner.operator.output_delay_ms if stage.output_delay is None else stage.output_delay_ms
        clocked.append(ClockedStage(inputs, before, runner.operator.has_timers, delay_ms))
    for runner, clock in zip(runners, derive_clocks(clocked), strict=True):
        runner.clock = clock


def _schema_for_next(stage: Stage, input_schema: pa.Schema) -> pa.Schema:
    bound = stage.operator.bind(stage.key, input_schema)
    declared = bound.next_schema if bound.next_schema is not None else bound.output_schema
    if declared is None:
        raise InvalidJob(
            f"stage {stage.name!r} has a next stage but declares no schema for it. "
            "Give its operator a next_schema or an output_schema."
        )
    return to_schema(declared)


def _to_reads(inputs: Reads, stage: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if isinstance(inputs, str):
        inputs = (inputs,)
    if isinstance(inputs, Mapping):
        found = tuple((name, to_key_columns(key)) for name, key in inputs.items())
    else:
        found = tuple((item, ()) if isinstance(item, str) else item for item in inputs)
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        raise InvalidJob(f"stage {stage!r} reads something twice: {names}. Name everything once.")
    return found


def _name(operator: Operator) -> str:
    return str(getattr(operator, "name", "") or type(operator).__name__)


def _find_unused(name: str, taken: set[str]) -> str:
    number = 2
    unused = name
    while unused in taken:
        unused, number = f"{name}-{number}", number + 1
    return unused
