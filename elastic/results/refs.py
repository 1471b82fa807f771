"""References to results: to one object that a node wrote, and the index that names the objects of a batch."""

from dataclasses import dataclass, replace
from typing import Any, Self

from elastic.results.errors import DuplicateResults


@dataclass(frozen=True, slots=True)
class ResultRef:
    """The object with what some units emitted in one round of one batch: `rows` for the sink, and `quarantined` ones.

    Without rows there is no object: then the key is empty and the size 0, and the ref only says which units are done.
    """

    key: str
    batch: int
    round: int
    unit_numbers: tuple[int, ...]
    rows: int
    size: int
    quarantined: int = 0

    def __post_init__(self) -> None:
        if bool(self.key) != bool(self.size) or bool(self.size) != bool(self.rows + self.quarantined):
            raise ValueError(
                f"{self!r} has an object without rows, or rows without an object. Use the ref that write() returned."
            )

    def to_json(self) -> list[Any]:
        """Return a list, not a dict: there is one for every node, round and batch."""
        return [self.key, self.batch, self.round, list(self.unit_numbers), self.rows, self.size, self.quarantined]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        key, batch, round_, unit_numbers, *counts = document
        return cls(key, batch, round_, tuple(unit_numbers), *counts)


@dataclass(frozen=True, slots=True)
class BatchIndex:
    """The objects that hold the results of a batch.

    Invariant: no two of them hold the same round of the same unit, so every result is there once.
    """

    batch: int
    timestamp_ms: int
    refs: tuple[ResultRef, ...]

    def __post_init__(self) -> None:
        seen = set()
        for ref in self.refs:
            if ref.batch != self.batch:
                raise ValueError(
                    f"{ref!r} does not belong to batch {self.batch}. Publish each batch with its own results."
                )
            for number in ref.unit_numbers:
                if (ref.round, number) in seen:
                    raise DuplicateResults(self.batch, ref.round, number)
                seen.add((ref.round, number))

    @property
    def rows(self) -> int:
        return sum(ref.rows for ref in self.refs)

    def without_empty(self) -> Self:
        """Return the same index without refs that have no object."""
        return replace(self, refs=tuple(ref for ref in self.refs if ref.size))

    def to_json(self) -> dict[str, Any]:
        return {"batch": self.batch, "timestamp_ms": self.timestamp_ms, "refs": [ref.to_json() for ref in self.refs]}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(document["batch"], document["timestamp_ms"], tuple(map(ResultRef.from_json, document["refs"])))
