"""Query parameters and request bodies, validated before the engine is called.

Defaults are those of `ScaleRequest` and `KeyRequest`.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from elastic.control import LEVEL_OPTIONS, LEVELS, MODES, TRANSFERS, KeyRequest, ScaleRequest
from elastic.routing import SPLITS
from migration import STRATEGIES
from migration.keys import KEY_STRATEGIES

_MAX_NODES = 1_024
_MAX_TAU = 1_000.0  # beyond it every assignment is balanced
_MAX_TASKS_PER_NODE = 1_000_000
_MAX_ENTRIES = 1_000_000  # every sender holds the key table
DEFAULT_STRATEGIES = ("ssm", "even", "consistent-hash")  # those that need no value table


def _check_one_of(names: Iterable[str]) -> AfterValidator:
    known = tuple(names)

    def check(name: str) -> str:
        if name not in known:
            raise ValueError(f"use one of {', '.join(known)}")
        return name

    return AfterValidator(check)


def _is_whole(value: object) -> bool:
    """Return whether a float is a whole number: JSON has one number type, in which 6.0 is 6."""
    return isinstance(value, float) and value.is_integer()


def _enum(names: Iterable[str]) -> Any:
    return Field(json_schema_extra={"enum": list(names)})


StrategyName = Annotated[str, _check_one_of(STRATEGIES), _enum(STRATEGIES)]
KeyStrategyName = Annotated[str, _check_one_of(KEY_STRATEGIES), _enum(KEY_STRATEGIES)]
LevelName = Annotated[str, _check_one_of(LEVELS), _enum(LEVELS)]
ModeName = Annotated[str, _check_one_of(MODES), _enum(MODES)]
TransferName = Annotated[str, _check_one_of(TRANSFERS), _enum(TRANSFERS)]
SplitsName = Annotated[str, _check_one_of(SPLITS), _enum(SPLITS)]
NodeName = Annotated[str, Field(min_length=1, max_length=100)]
Whole = Annotated[int, BeforeValidator(lambda value: int(value) if _is_whole(value) else value)]
NodeCount = Annotated[Whole, Field(ge=1, le=_MAX_NODES)]


class BalanceOptions(BaseModel):
    """Options of the balance of tasks, and the value table of the strategy."""

    model_config = ConfigDict(extra="forbid")

    tau: Annotated[float, Field(ge=0, le=_MAX_TAU, allow_inf_nan=False)] = Field(
        ScaleRequest.tau, description="Imbalance tolerance: a node may carry at most 1 + tau times the mean work."
    )
    relax: bool = Field(
        ScaleRequest.relax,
        description="If no assignment is balanced, use the smallest feasible cap instead of refusing the request.",
    )
    value: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        None, description="Name of a value table in the job's store, for the strategy mtm."
    )

    def to_arguments(self) -> dict[str, Any]:
        """Return the arguments of `Job.scale` and `Job.rebalance`, without a value table that was not given."""
        return self.model_dump(exclude={"value"} if self.value is None else set())


class ScaleTarget(BalanceOptions):
    """The target of a request: one of nodes, add and remove; none of them is a rebalance."""

    nodes: NodeCount | None = Field(ScaleRequest.nodes, description="Target number of nodes.")
    add: NodeCount | None = Field(ScaleRequest.add, description="Number of nodes to add.")
    remove: list[NodeName] = Field(
        default=list(ScaleRequest.remove), max_length=_MAX_NODES, description="Names of the nodes to remove."
    )

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if sum((self.nodes is not None, self.add is not None, bool(self.remove))) > 1:
            raise ValueError("nodes, add and remove exclude each other: give one of them")
        return self


class PlanQuery(ScaleTarget):
    """A target, and the strategies to plan it with."""

    strategy: list[StrategyName] = Field(
        default=list(DEFAULT_STRATEGIES),
        min_length=1,
        max_length=len(STRATEGIES),
        description="Strategies to compare; each makes one plan.",
    )
    mode: ModeName = Field(ScaleRequest.mode, description="How the migration would be carried out; warm uses standbys.")

    def to_plan_arguments(self, strategy: str) -> dict[str, Any]:
        """Return the arguments of `Job.plan`; only mtm gets the value table."""
        arguments = self.to_arguments() | {"strategy": strategy}
        if strategy != "mtm":
            arguments.pop("value", None)
        return arguments


class MovementOptions(BaseModel):
    """Options of the movement of state."""

    strategy: StrategyName = Field(ScaleRequest.strategy, description="Planning strategy.")
    mode: ModeName = Field(ScaleRequest.mode, description="How the migration is carried out.")
    transfer: TransferName = Field(ScaleRequest.transfer, description="How states travel between nodes.")
    tasks_per_node: Annotated[Whole, Field(ge=1, le=_MAX_TASKS_PER_NODE)] | None = Field(
        ScaleRequest.tasks_per_node,
        description="Maximum number of tasks in flight per node in progressive mode; null is unlimited.",
    )
    bytes_per_node: Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False)] | None = Field(
        ScaleRequest.bytes_per_node,
        description="Maximum bytes of state in flight per node in progressive mode, where null is unlimited; of keys, "
        "per node and batch.",
    )


class KeyOptions(BaseModel):
    """Options of a balance by keys: the overload that it allows, and the size of the key table."""

    theta: Annotated[float, Field(ge=0, le=_MAX_TAU, allow_inf_nan=False)] = Field(
        KeyRequest.theta, description="Imbalance tolerance: a node may carry at most 1 + theta times the mean work."
    )
    stage: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        KeyRequest.stage, description="Name of the stage whose keys move; by default the only one grouped by table."
    )
    most_entries: Annotated[Whole, Field(ge=1, le=_MAX_ENTRIES)] = Field(
        KeyRequest.most_entries, description="Maximum number of entries of the key table."
    )
    key_strategy: KeyStrategyName = Field(KeyRequest.strategy, description="Planning strategy of the level keys.")


class BalanceQuery(KeyOptions):
    """Options of the plans of both levels."""

    model_config = ConfigDict(extra="forbid")

    relax: bool = Field(
        KeyRequest.relax,
        description="If a level cannot balance the nodes, its plan comes as close as possible instead of failing.",
    )
    mode: ModeName = Field(ScaleRequest.mode, description="How tasks would be moved; warm uses standbys.")

    def to_arguments(self) -> dict[str, Any]:
        """Return the arguments of `Job.plan_levels`."""
        return self.model_dump(exclude={"stage"} if self.stage is None else set())


class RebalanceBody(BalanceOptions, MovementOptions, KeyOptions):
    """Move tasks or keys between the current nodes."""

    model_config = ConfigDict(strict=True)  # JSON has numbers and booleans; a query has text only

    level: LevelName = Field("tasks", description="What moves: tasks, keys, or what is cheaper.")

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        options = LEVEL_OPTIONS[self.level]
        foreign = sorted(self.model_fields_set - options - {"level"})
        if foreign:
            raise ValueError(f"{foreign[0]} is not an option of level {self.level!r}: use {', '.join(sorted(options))}")
        return self

    def to_arguments(self) -> dict[str, Any]:
        """Return the arguments of `Job.rebalance`: those of the level."""
        arguments = {"level": self.level, **self.model_dump(include=set(LEVEL_OPTIONS[self.level]))}
        for name in ("value",) if self.level == "tasks" else ("stage", "bytes_per_node"):
            if arguments[name] is None:
                del arguments[name]
        if self.level == "keys":
            arguments["strategy"] = arguments.pop("key_strategy")
        return arguments


class SplitBody(BaseModel):
    """Change which keys a partial stage splits."""

    model_config = ConfigDict(extra="forbid", strict=True)

    split: SplitsName = Field("head", description="; ".join(f"{name}: {what}" for name, what in SPLITS.items()) + ".")
    stage: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Name of the operator whose keys are split; by default the only one behind a partial stage."
    )


class ScaleBody(ScaleTarget, MovementOptions):
    """Change the number of nodes."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        if self.nodes is None and self.add is None and not self.remove:
            raise ValueError("give one of nodes, add and remove")
        return self
