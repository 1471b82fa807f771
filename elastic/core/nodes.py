"""The nodes as the driver knows them: which are wanted, which incarnation of each is current, and what it reported."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from elastic.core import commands
from elastic.core.commands import Command, StartNode, StopNode
from elastic.core.messages import Heartbeat, NodeCommand, NodeJoined, NodeReport
from elastic.core.stage_costs import NodeCosts


@dataclass(frozen=True)
class NodeView:
    """A node at one moment; without an address it is starting. `heartbeat_at` is a time of the driver's clock."""

    name: str
    incarnation: str
    address: str
    pid: int
    serving: bool
    heartbeat: Heartbeat | None = None
    heartbeat_at: float = 0.0
    executor: str = ""

    @property
    def place(self) -> str:
        """Where it runs, from the outside in: its host, and its executor if that is known."""
        return _place(self.address, self.executor)


@dataclass(frozen=True)
class FailedStarts:
    """Number of times in a row that a node failed to start, and the reason of the last one."""

    attempts: int
    reason: str


@dataclass
class _Node:
    incarnation: str
    address: str = ""
    pid: int = 0
    executor: str = ""
    joined: bool = False
    has_units: bool = False
    heartbeat: Heartbeat | None = None
    heartbeat_at: float = 0.0


class Nodes:
    """One incarnation of each node, by name; reports of any other incarnation are ignored.

    `life` returns the number of the newest manifest: with it, no two drivers of a job make the same incarnation.
    """

    def __init__(self, life: Callable[[], int], names: Sequence[str]) -> None:
        self._life = life
        self._launches = 0
        self._nodes = {name: _Node(self._new_incarnation(name)) for name in names}
        self._failed_starts: dict[str, FailedStarts] = {}
        self._views: dict[str, NodeView] = {}
        self._all_views: tuple[NodeView, ...] = ()
        self.spares = 0  # processes that wait for a name

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def start_all(self) -> list[Command]:
        return [StartNode(name, node.incarnation) for name, node in self._nodes.items()]

    def serving(self) -> frozenset[str]:
        """Return the nodes that were given their units."""
        return frozenset(name for name, node in self._nodes.items() if node.has_units)

    def without_units(self) -> list[str]:
        """Return the nodes that have joined and wait for their units."""
        return [name for name, node in self._nodes.items() if node.joined and not node.has_units]

    def address(self, name: str) -> str:
        return self._nodes[name].address

    def places(self) -> dict[str, str]:
        """Return where every node that has joined runs; see `NodeView.place`."""
        return {name: _place(node.address, node.executor) for name, node in self._nodes.items() if node.joined}

    def join(self, event: NodeJoined) -> bool:
        """Note that a node has joined; return whether it is the current incarnation and joins for the first time."""
        node = self._nodes.get(event.node)
        if node is None or node.incarnation != event.incarnation or node.joined:
            return False
        node.joined, node.address, node.pid, node.executor = True, event.address, event.pid, event.executor
        self._failed_starts.pop(event.node, None)
        self._views.pop(event.node, None)
        return True

    def give_units(self, name: str) -> None:
        self._nodes[name].has_units = True
        self._views.pop(name, None)

    def is_current(self, name: str, incarnation: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and node.incarnation == incarnation

    def accepts(self, report: NodeReport) -> bool:
        """Whether a report is from the current incarnation, and that incarnation has units."""
        return self.is_current(report.node, report.incarnation) and self._nodes[report.node].has_units

    def heard(self, heartbeat: Heartbeat, at: float) -> None:
        if self.is_current(heartbeat.node, heartbeat.incarnation):
            node = self._nodes[heartbeat.node]
            node.heartbeat, node.heartbeat_at = heartbeat, at
            self._views.pop(heartbeat.node, None)

    def costs(self) -> tuple[NodeCosts, ...]:
        """Return what nodes measured of shuffled stages; nothing of a node that has not measured any."""
        beats = ((name, node.heartbeat) for name, node in self._nodes.items())
        return tuple(NodeCosts(name, beat.costs) for name, beat in beats if beat is not None and beat.costs)

    def start_failed(self, name: str, reason: str) -> None:
        known = self._failed_starts.get(name)
        self._failed_starts[name] = FailedStarts(1 if known is None else known.attempts + 1, reason)

    def has_joined(self, name: str) -> bool:
        return name in self._nodes and self._nodes[name].joined

    def request_start(self, name: str) -> list[Command]:
        """Start a node unless it is there, or starting."""
        return [] if name in self._nodes else [self.start(name)]

    def start(self, name: str) -> StartNode:
        """Start another incarnation in the place of the one before, if there was one."""
        node = self._nodes[name] = _Node(self._new_incarnation(name))
        self._views.pop(name, None)
        return StartNode(name, node.incarnation)

    def stop(self, name: str) -> StopNode:
        self._views.pop(name, None)
        self._failed_starts.pop(name, None)
        return StopNode(name, self._nodes.pop(name).incarnation)

    def send(self, name: str, message: NodeCommand) -> list[Command]:
        """Send to a node that has units; another one learns what it needs when it gets its units."""
        node = self._nodes.get(name)
        return [commands.Send(name, node.incarnation, message)] if node is not None and node.has_units else []

    def views(self) -> tuple[NodeView, ...]:
        """Return all nodes; views of unchanged nodes are the same objects."""
        if len(self._views) == len(self._nodes) == len(self._all_views):
            return self._all_views
        for name, node in self._nodes.items():
            if name not in self._views:
                seen = node.pid, node.has_units, node.heartbeat, node.heartbeat_at, node.executor
                self._views[name] = NodeView(name, node.incarnation, node.address, *seen)
        self._all_views = tuple(self._views[name] for name in self._nodes)
        return self._all_views

    def failed_starts(self) -> dict[str, FailedStarts]:
        return dict(self._failed_starts)

    def _new_incarnation(self, name: str) -> str:
        self._launches += 1
        return f"{name}.{self._life()}.{self._launches}"


def _place(address: str, executor: str) -> str:
    host = address.rpartition(":")[0]
    return f"{host}/{executor}" if executor else host
