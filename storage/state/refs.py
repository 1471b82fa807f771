"""References to immutable objects, small enough for messages and manifests: saved states and logged input."""

import secrets
from dataclasses import dataclass
from typing import Any, Self

from storage.errors import InvalidStorageInput
from storage.state.unit_id import UnitId

BEFORE_FIRST_BATCH = -1  # Structured Streaming counts batches from 0


@dataclass(frozen=True, slots=True)
class StateRef:
    """One saved state: it includes all batches up to and including `batch`, and takes `size` bytes in the store.

    Invariant: the key lies in the folder of the lease, so that the lease protects the object.
    """

    key: str
    unit: UnitId
    batch: int
    size: int
    lease: str

    def __post_init__(self) -> None:
        if f"/state/{self.lease}/" not in self.key:
            raise InvalidStorageInput(
                f"{self.key!r} is not a state saved under lease {self.lease!r}. Use the StateRef that save returned."
            )

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "unit": self.unit.to_json(),
            "batch": self.batch,
            "size": self.size,
            "lease": self.lease,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(**{**document, "unit": UnitId.from_json(document["unit"])})


@dataclass(frozen=True, slots=True, order=True)
class LogRef:
    """The logged input of one batch, in one round, from one source partition; refs sort in the order of replay.

    Input that is too large for one object is logged in several: `chunk` counts them in the order of the rows. The nonce
    tells attempts apart: two appends of the same input are two objects, and the commit names one of them.
    """

    batch: int
    round: int
    partition: int
    chunk: int
    nonce: str
    size: int

    def __post_init__(self) -> None:
        if min(self.batch, self.round, self.partition, self.chunk) < 0:
            raise InvalidStorageInput(
                f"batch {self.batch}, round {self.round}, partition {self.partition}, chunk {self.chunk}: none of them "
                "can be negative. Count all four from 0."
            )

    @classmethod
    def new(cls, batch: int, round_: int, partition: int, chunk: int = 0) -> Self:
        """Return a ref with a new nonce; its size is not known yet."""
        return cls(batch, round_, partition, chunk, secrets.token_hex(6), 0)

    def to_json(self) -> list[Any]:
        """Return a list, not a dict: a manifest may hold thousands."""
        return [self.batch, self.round, self.partition, self.chunk, self.nonce, self.size]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        return cls(*document)
