"""The costs of rows, as a node knows them, that it sends to shuffled stages behind the first."""

from dataclasses import replace

from elastic.core.stage_costs import NodeCosts, forecast_stage
from elastic.core.steps import Position
from elastic.routing import Routing, ShuffleGrouping
from elastic.routing.shuffle import NO_FORECAST, Forecast


class KnownCosts:
    """The costs of all nodes as of the newest step that came with some. One thread learns, another one asks.

    Nodes have no backlog when they get such rows: a round begins when all nodes are done with the one before.
    """

    def __init__(self) -> None:
        self._costs: tuple[NodeCosts, ...] = ()
        self._forecasts: dict[int, Forecast] = {}  # by stage

    def learn(self, costs: tuple[NodeCosts, ...] | None) -> None:
        if costs is not None:
            self._costs, self._forecasts = costs, {}

    def forecast(self, stage: int, position: Position, routing: Routing, node: str) -> Forecast:
        """Return what this node, one of several senders, expects of the rows that a step emits."""
        grouping = routing.groupings[stage]
        if not isinstance(grouping, ShuffleGrouping):
            return NO_FORECAST
        forecasts = self._forecasts
        if stage not in forecasts:
            forecasts[stage] = forecast_stage(self._costs, stage) if grouping.is_measured else NO_FORECAST
        nodes = routing.assignment.nodes
        sender = nodes.index(node) if node in nodes else 0
        known = replace(forecasts[stage], batch=position.batch + position.round)
        return known.of_sender(sender, len(nodes))
