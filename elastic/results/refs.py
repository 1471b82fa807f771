"""Names of results: one object that a node wrote, and the index that says which objects of a batch count."""

from dataclasses import dataclass, replace
from typing import Any, Self

from elastic.results.errors import DoubleResults


@dataclass(frozen=True, slots=True)
class ResultRef:
    """What some slots made in one round of one batch: `rows` for the sink, and `quarantined` ones.

    Without any there is no object: then the key is empty and the size 0, and the ref only says that the slots are done.
    """

    key: str
    batch: int
    round: int
    slots: tuple[int, ...]
    rows: int
    size: int
    quarantined: int = 0

    def __post_init__(self) -> None:
        if bool(self.key) != bool(self.size) or bool(self.size) != bool(self.rows + self.quarantined):
            raise ValueError(
                f"{self!r} has an object without rows, or rows without an object. Use what write returned."
            )

    def to_json(self) -> list[Any]:
        """A list, not a dict: there is one for every node, round and batch."""
        return [self.key, self.batch, self.round, list(self.slots), self.rows, self.size, self.quarantined]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        key, batch, round_, slots, *numbers = document
        return cls(key, batch, round_, tuple(slots), *numbers)


@dataclass(frozen=True, slots=True)
class BatchIndex:
    """Which objects hold the results of a batch.

    Invariant: no slot's results of a round are in two of them, so every result is there once.
    """

    batch: int
    timestamp_ms: int
    refs: tuple[ResultRef, ...]

    def __post_init__(self) -> None:
        taken = set()
        for ref in self.refs:
            if ref.batch != self.batch:
                raise ValueError(f"{ref!r} is not of batch {self.batch}. Publish each batch with its own results.")
            for slot in ref.slots:
                if (ref.round, slot) in taken:
                    raise DoubleResults(self.batch, ref.round, slot)
                taken.add((ref.round, slot))

    @property
    def rows(self) -> int:
        return sum(ref.rows for ref in self.refs)

    def without_empty(self) -> Self:
        """The same results, without refs that have no object."""
        return replace(self, refs=tuple(ref for ref in self.refs if ref.size))

    def to_json(self) -> dict[str, Any]:
        return {"batch": self.batch, "timestamp_ms": self.timestamp_ms, "refs": [ref.to_json() for ref in self.refs]}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(document["batch"], document["timestamp_ms"], tuple(map(ResultRef.from_json, document["refs"])))
