"""A policy that splits or moves keys before it adds nodes: nodes that wait for the busiest one are not too few."""

from dataclasses import dataclass

from elastic.control.autoscale.policy import Decision, Observation
from elastic.control.autoscale.utilisation import Utilisation
from elastic.control.key_request import KeyRequest
from elastic.errors import InvalidAutoscaling
from elastic.numbers import as_number


@dataclass(frozen=True)
class Imbalance(Utilisation):
    """Rebalances by keys while the busiest node is more than `theta` above the mean; otherwise scales as `Utilisation`.

    Utilisation is measured over the autoscaler's window, so a single heavy batch does not count. Above `high` on
    average there is too much work for the nodes however it is spread, and below `idle` a rebalance gains nothing. A
    partial stage that splits no keys splits its head first: that moves no state.
    """

    theta: float = 0.2  # above what key plans aim at: measurements scatter, and a rebalance should last
    idle: float = 0.1
    stage: str | None = None  # whose keys move; None: the only one that is grouped by table

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("theta", "idle"):
            number = as_number(getattr(self, name))
            if number is None or not number > 0:
                raise InvalidAutoscaling(name, getattr(self, name), "it must be a number above 0")

    def decide(self, observation: Observation) -> Decision:
        load = observation.load
        mean, busiest = load.mean_utilisation, max(load.utilisation, key=load.utilisation.__getitem__, default=None)
        if busiest is not None and self.idle <= mean <= self.high:
            overload = load.utilisation[busiest] / mean - 1
            if overload > self.theta:
                reason = f"{busiest} is {overload:.0%} busier than the mean, above theta {self.theta:.0%}"
                if (stage := observation.unsplit_stage) is not None:
                    reason += f"; {stage} can split its heaviest keys, which moves no state"
                    return Decision(observation.nodes, reason, split=stage)
                return Decision(observation.nodes, reason, KeyRequest(theta=self.theta / 2, stage=self.stage))
        return super().decide(observation)
