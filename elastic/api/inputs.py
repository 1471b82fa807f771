"""What a client may ask for: checked and bounded before anything of the engine is called."""

from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from elastic.control import MODES, TRANSFERS, ScaleRequest
from migration import STRATEGIES

_MOST_NODES = 1_024
_MOST_TAU = 1_000.0  # beyond that every assignment is balanced
_MOST_TASKS_PER_NODE = 1_000_000
COMPARED = ("ssm", "even", "consistent-hash")  # those that need no knowledge of their own


def _known(names: Iterable[str]) -> AfterValidator:
    known = tuple(names)

    def checked(name: str) -> str:
        if name not in known:
            raise ValueError(f"use one of {', '.join(known)}")
        return name

    return AfterValidator(checked)


def _is_whole(value: object) -> bool:
    """JSON knows no whole numbers: 6.0 is one."""
    return isinstance(value, float) and value.is_integer()


def _listed(names: Iterable[str]) -> Any:
    return Field(json_schema_extra={"enum": list(names)})


StrategyName = Annotated[str, _known(STRATEGIES), _listed(STRATEGIES)]
ModeName = Annotated[str, _known(MODES), _listed(MODES)]
TransferName = Annotated[str, _known(TRANSFERS), _listed(TRANSFERS)]
NodeName = Annotated[str, Field(min_length=1, max_length=100)]
Whole = Annotated[int, BeforeValidator(lambda value: int(value) if _is_whole(value) else value)]
NodeCount = Annotated[Whole, Field(ge=1, le=_MOST_NODES)]


class Balance(BaseModel):
    """How evenly work must be spread, and what the strategy knows of the future."""

    model_config = ConfigDict(extra="forbid")

    tau: Annotated[float, Field(ge=0, le=_MOST_TAU, allow_inf_nan=False)] = Field(
        ScaleRequest.tau, description="a node may carry 1 + tau times the mean work"
    )
    relax: bool = Field(
        ScaleRequest.relax, description="if nothing is balanced, take the smallest cap that is feasible"
    )
    value: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        None, description="the name of a value table in the job's store, for the strategy mtm"
    )

    def arguments(self) -> dict[str, Any]:
        """As `Job.scale` and `Job.rebalance` take them: a value that was not given is no argument."""
        return self.model_dump(exclude={"value"} if self.value is None else set())


class Wanted(Balance):
    """How many nodes, or which must go; none of the three is a rebalance."""

    nodes: NodeCount | None = Field(None, description="so many in all")
    add: NodeCount | None = Field(None, description="so many more")
    remove: list[NodeName] = Field(default=[], max_length=_MOST_NODES, description="these very nodes must leave")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if sum((self.nodes is not None, self.add is not None, bool(self.remove))) > 1:
            raise ValueError("nodes, add and remove say different things: give one of them")
        return self


class PlanQuery(Wanted):
    """What to plan, by which strategies."""

    strategy: list[StrategyName] = Field(
        default=list(COMPARED), min_length=1, max_length=len(STRATEGIES), description="one plan is made by each"
    )

    def arguments_for(self, strategy: str) -> dict[str, Any]:
        """As `Job.plan` takes them; a value table is for the only strategy that knows what to do with it."""
        told = self.arguments() | {"strategy": strategy}
        return told if strategy == "mtm" else {name: told[name] for name in told.keys() - {"value"}}


class Movement(BaseModel):
    """How state goes."""

    strategy: StrategyName = "ssm"
    mode: ModeName = "progressive"
    transfer: TransferName = "store"
    tasks_per_node: Annotated[Whole, Field(ge=1, le=_MOST_TASKS_PER_NODE)] | None = Field(
        2, description="so many tasks of a node are on their way at a time"
    )
    bytes_per_node: Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False)] | None = Field(
        None, description="so many bytes of a node are on their way at a time"
    )


class RebalanceBody(Balance, Movement):
    """Move tasks between the nodes that there are."""

    model_config = ConfigDict(strict=True)  # JSON has numbers and truth values of its own; a query has only text


class ScaleBody(Wanted, Movement):
    """Change the number of nodes."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.nodes is None and self.add is None and not self.remove:
            raise ValueError("give one of nodes, add and remove")
        return self
