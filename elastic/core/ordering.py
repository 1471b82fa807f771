"""Messages in the order they were sent, each once, over a network that delays, repeats and reorders them."""

from typing import Generic, TypeVar

Item = TypeVar("Item")


class InOrder(Generic[Item]):
    """The receiving end: the sender numbers messages from 0 and repeats each until it is acknowledged."""

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, Item] = {}

    def accept(self, number: int, item: Item) -> list[Item]:
        """Return the items that can be handled now, in order; none for a repeated item or one that came too early."""
        if number >= self._next:
            self._early[number] = item
        ready = []
        while self._next in self._early:
            ready.append(self._early.pop(self._next))
            self._next += 1
        return ready
