"""The nodes as the controller knows them: who is wanted, which incarnation counts, and how far it is."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from elastic.runtime.protocol import commands
from elastic.runtime.protocol.commands import Command, StartNode, StopNode
from elastic.runtime.protocol.messages import (
    Applied,
    CaughtUp,
    Failed,
    Installed,
    Joined,
    Message,
    Released,
    Saved,
    StepStarted,
    Stored,
)


@dataclass
class _Node:
    incarnation: str
    address: str = ""
    joined: bool = False
    has_units: bool = False


class Roster:
    """By name, one incarnation of each node; what any other says is not heard.

    `life` is the number of the newest manifest: with it, no two controllers of a job make the same incarnation.
    """

    def __init__(self, life: Callable[[], int], names: Sequence[str]) -> None:
        self._life = life
        self._launches = 0
        self._nodes = {name: _Node(self._new_incarnation(name)) for name in names}

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def starting(self) -> list[Command]:
        """What starts all of them."""
        return [StartNode(name, node.incarnation) for name, node in self._nodes.items()]

    def alive(self) -> dict[str, str]:
        """Incarnations of the nodes that are up, by name."""
        return {name: node.incarnation for name, node in self._nodes.items() if node.joined}

    def wanted(self) -> dict[str, str]:
        """Incarnations of all nodes that are up or being started, by name."""
        return {name: node.incarnation for name, node in self._nodes.items()}

    def serving(self) -> set[str]:
        """Nodes that were given their units."""
        return {name for name, node in self._nodes.items() if node.has_units}

    def without_units(self) -> list[str]:
        """Nodes that are up and wait for their units."""
        return [name for name, node in self._nodes.items() if node.joined and not node.has_units]

    def address(self, name: str) -> str:
        return self._nodes[name].address

    def join(self, event: Joined) -> bool:
        """Whether this is the incarnation that was waited for."""
        node = self._nodes.get(event.node)
        if node is None or node.incarnation != event.incarnation or node.joined:
            return False
        node.joined, node.address = True, event.address
        return True

    def give_units(self, name: str) -> None:
        self._nodes[name].has_units = True

    def is_current(self, name: str, incarnation: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and node.incarnation == incarnation

    def start(self, name: str) -> StartNode:
        """Another incarnation; if there was one, nobody listens to it any more."""
        node = self._nodes[name] = _Node(self._new_incarnation(name))
        return StartNode(name, node.incarnation)

    def stop(self, name: str) -> StopNode:
        return StopNode(name, self._nodes.pop(name).incarnation)

    def send(self, name: str, message: Message) -> list[Command]:
        """To a node that has units; to one that has not, what matters is said when it gets them."""
        node = self._nodes.get(name)
        return [commands.Send(name, node.incarnation, message)] if node is not None and node.has_units else []

    def listens_to(
        self, report: Applied | Saved | Failed | Released | Stored | Installed | StepStarted | CaughtUp
    ) -> bool:
        return self.is_current(report.node, report.incarnation) and self._nodes[report.node].has_units

    def _new_incarnation(self, name: str) -> str:
        self._launches += 1
        return f"{name}.{self._life()}.{self._launches}"
