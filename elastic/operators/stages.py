"""Pipelines: operators in order, each with its key, and the schemas between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import pyarrow as pa

from elastic.errors import InvalidJob, NotAnOperator, StatefulShuffle
from elastic.numbers import as_int
from elastic.operators.divide import check_divisible
from elastic.operators.keyed import KeyedOperator
from elastic.operators.operator import Operator
from elastic.operators.partial import (
    EVERY_BATCH,
    PartialOperator,
    check_mergeable,
    check_partial_stage,
    parse_every,
)
from elastic.operators.schemas import to_schema
from elastic.operators.stage_runner import StageRunner
from elastic.routing.groupings import (
    PartialGrouping,
    ShuffleGrouping,
    TableGrouping,
    check_splits,
    parse_grouping,
    with_scheduler,
)


@dataclass(frozen=True)
class Stage:
    """One operator of a pipeline.

    Without a key of its own it has the job's key; without a name, the operator's `name` or class names it. The grouping
    says how rows find their unit of state: by "hash", or by hash and a "table" of single keys (see `elastic.routing`).
    `partial` makes stages whose keys are split.

    Any task of a stage with the grouping "shuffle" may take any row; it has no state and needs no key. The `scheduler`
    chooses: "posg" (the default) and "posg-batch" the node that will be done with the row first, by what rows with the
    same columns `cost_key` took so far (by default the key), "round-robin" each node in turn.

    `standbys` is the number of nodes that follow each unit, to take over when its node is lost; None is the setting of
    that name.
    """

    operator: Operator
    key: tuple[str, ...]
    name: str
    grouping: str
    cost_key: tuple[str, ...]
    standbys: int | None

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
    ) -> None:
        if standbys is not None and (as_int(standbys) is None or standbys < 0):
            raise InvalidJob(f"standbys={standbys!r} is invalid. Give the number of copies of each unit: 0, 1 or 2.")
        declared = parse_grouping(with_scheduler(grouping, scheduler))
        check_partial_stage(operator, declared, name or _name(operator))
        check_shuffled_stage(operator, declared, name or _name(operator), to_key_columns(cost_key))
        object.__setattr__(self, "operator", operator)
        object.__setattr__(self, "key", to_key_columns(key))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "grouping", with_scheduler(grouping, scheduler))
        object.__setattr__(self, "cost_key", to_key_columns(cost_key))
        object.__setattr__(self, "standbys", standbys)


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
    return Stage(first, stage.key, name, grouping=grouping, standbys=stage.standbys), stage


def to_key_columns(key: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the key columns, given as one string or several."""
    return (key,) if isinstance(key, str) else tuple(key)


def build_stages(
    pipeline: Operator | Stage | Sequence[Operator | Stage], key: str | Sequence[str]
) -> tuple[Stage, ...]:
    """Return the stages of a pipeline, each with a key and a unique name."""
    given = list(pipeline) if isinstance(pipeline, Sequence) else [pipeline]
    if not given:
        raise InvalidJob("the pipeline has no operators. Give at least one.")
    default_key = to_key_columns(key)
    stages: list[Stage] = []
    for item in given:
        stage = item if isinstance(item, Stage) else Stage(item)
        if not isinstance(stage.operator, Operator):
            raise NotAnOperator(stage.operator)
        name = stage.name or _unused(_name(stage.operator), {other.name for other in stages})
        if name in {other.name for other in stages}:
            raise InvalidJob(f"two stages are named {name!r}. Give each stage a unique name.")
        key_columns = stage.key or default_key
        stages.append(
            Stage(
                stage.operator,
                key_columns,
                name,
                grouping=stage.grouping,
                cost_key=stage.cost_key,
                standbys=stage.standbys,
            )
        )
    _check_pairs(stages)
    return tuple(stages)


def check_shuffled_stage(operator: Operator, grouping: object, name: str, cost_key: tuple[str, ...]) -> None:
    """Raise `StatefulShuffle` or `InvalidJob` if any task cannot take any row of a stage that says so."""
    is_shuffled = isinstance(grouping, ShuffleGrouping)
    if is_shuffled and (not getattr(operator, "stateless", False) or isinstance(operator, KeyedOperator)):
        raise StatefulShuffle(name, type(operator).__name__)
    if cost_key and not is_shuffled:
        raise InvalidJob(
            f"stage {name!r} has a cost key, but is grouped by {getattr(grouping, 'kind', grouping)!r}. "
            'Use grouping="shuffle", or leave the cost key out.'
        )


def _check_pairs(stages: Sequence[Stage]) -> None:
    """Raise `InvalidJob` if a partial stage is not followed by its operator, with the same key."""
    for stage, following in pairwise([*stages, None]):
        if stage is None or not isinstance(stage.operator, PartialOperator):
            continue
        if following is None or following.operator is not stage.operator.operator or following.key != stage.key:
            raise InvalidJob(
                f"the partial stage {stage.name!r} must be followed by its own operator, with the same key. "
                "Use both stages that partial() returns, one after the other."
            )


def build_runners(
    stages: Sequence[Stage], input_schema: pa.Schema, on_error: Literal["fail", "skip"] = "fail"
) -> tuple[StageRunner, ...]:
    """Return a runner for each stage; the rows that a stage emits to the next are its input.

    Raises `IndivisibleState` for a stage that is grouped by table although its state belongs to the task.
    """
    runners: list[StageRunner] = []
    for number, stage in enumerate(stages):
        last = number == len(stages) - 1
        gets_partials = number > 0 and isinstance(stages[number - 1].operator, PartialOperator)
        # An operator behind a partial stage is bound to the rows that the partials stand for.
        rows_schema = runners[-1].input_schema if gets_partials else input_schema
        next_schema = None if last else _schema_for_next(stage, rows_schema)
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
        )
        if stage.grouping == TableGrouping.kind:
            check_divisible(runner.operator, stage.name)
        runners.append(runner)
        input_schema = next_schema if next_schema is not None else input_schema
    return tuple(runners)


def _schema_for_next(stage: Stage, input_schema: pa.Schema) -> pa.Schema:
    bound = stage.operator.bind(stage.key, input_schema)
    declared = bound.next_schema if bound.next_schema is not None else bound.output_schema
    if declared is None:
        raise InvalidJob(
            f"stage {stage.name!r} has a next stage but declares no schema for it. "
            "Give its operator a next_schema or an output_schema."
        )
    return to_schema(declared)


def _name(operator: Operator) -> str:
    return str(getattr(operator, "name", "") or type(operator).__name__)


def _unused(name: str, taken: set[str]) -> str:
    number = 2
    unused = name
    while unused in taken:
        unused, number = f"{name}-{number}", number + 1
    return unused
