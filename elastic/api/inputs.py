"""Query parameters and request bodies, validated before the engine is called. Defaults are those of `ScaleRequest`."""

from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from elastic.control import MODES, TRANSFERS, ScaleRequest
from migration import STRATEGIES

_MAX_NODES = 1_024
_MAX_TAU = 1_000.0  # beyond it every assignment is balanced
_MAX_TASKS_PER_NODE = 1_000_000
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
ModeName = Annotated[str, _check_one_of(MODES), _enum(MODES)]
TransferName = Annotated[str, _check_one_of(TRANSFERS), _enum(TRANSFERS)]
NodeName = Annotated[str, Field(min_length=1, max_length=100)]
Whole = Annotated[int, BeforeValidator(lambda value: int(value) if _is_whole(value) else value)]
NodeCount = Annotated[Whole, Field(ge=1, le=_MAX_NODES)]


class BalanceOptions(BaseModel):
    """How evenly work is spread, and the value table of the strategy."""

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

    def to_plan_arguments(self, strategy: str) -> dict[str, Any]:
        """Return the arguments of `Job.plan`; only mtm gets the value table."""
        arguments = self.to_arguments() | {"strategy": strategy}
        if strategy != "mtm":
            arguments.pop("value", None)
        return arguments


class MovementOptions(BaseModel):
    """How state moves."""

    strategy: StrategyName = Field(ScaleRequest.strategy, description="Planning strategy.")
    mode: ModeName = Field(ScaleRequest.mode, description="How the migration is carried out.")
    transfer: TransferName = Field(ScaleRequest.transfer, description="How states travel between nodes.")
    tasks_per_node: Annotated[Whole, Field(ge=1, le=_MAX_TASKS_PER_NODE)] | None = Field(
        ScaleRequest.tasks_per_node,
        description="Maximum number of tasks in flight per node in progressive mode; null is unlimited.",
    )
    bytes_per_node: Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False)] | None = Field(
        ScaleRequest.bytes_per_node,
        description="Maximum bytes of state in flight per node in progressive mode; null is unlimited.",
    )


class RebalanceBody(BalanceOptions, MovementOptions):
    """Move tasks between the current nodes."""

    model_config = ConfigDict(strict=True)  # JSON has numbers and booleans; a query has text only


class ScaleBody(ScaleTarget, MovementOptions):
    """Change the number of nodes."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="after")
    def _check_given(self) -> Self:
        if self.nodes is None and self.add is None and not self.remove:
            raise ValueError("give one of nodes, add and remove")
        return self
