"""Transition matrices by hour of the day."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from mdp.errors import InvalidMatrix
from mdp.matrix import TransitionMatrix

FORMAT = "hourly-matrices-1"
HOURS = 24


@dataclass(frozen=True)
class HourlyMatrices:
    """`at(hour)` is the matrix for migrations in that hour of the day, `overall` the one for all hours.

    Invariant: 24 entries, all over the same node counts. An hour with too few observations has None, and `at` returns
    `overall`.
    """

    overall: TransitionMatrix
    hours: tuple[TransitionMatrix | None, ...]

    def __init__(self, overall: TransitionMatrix, hours: Sequence[TransitionMatrix | None]) -> None:
        if len(hours) != HOURS:
            raise InvalidMatrix(f"there are matrices of {len(hours)} hours. Give {HOURS}, None for hours without one.")
        for hour, matrix in enumerate(hours):
            if matrix is not None and matrix.nodes != overall.nodes:
                raise InvalidMatrix(f"hour {hour} has other node counts than the rest. Learn all over one range.")
        object.__setattr__(self, "overall", overall)
        object.__setattr__(self, "hours", tuple(hours))

    def at(self, hour: int) -> TransitionMatrix:
        if not 0 <= hour < HOURS:
            raise InvalidMatrix(f"a day has no hour {hour}. Give 0 to {HOURS - 1}.")
        return self.hours[hour] or self.overall

    @property
    def nodes(self) -> tuple[int, ...]:
        return self.overall.nodes

    @property
    def learned_hours(self) -> tuple[int, ...]:
        """The hours that have a matrix of their own."""
        return tuple(hour for hour, matrix in enumerate(self.hours) if matrix is not None)

    def to_dict(self) -> dict[str, Any]:
        hours = [None if matrix is None else matrix.to_dict() for matrix in self.hours]
        return {"format": FORMAT, "overall": self.overall.to_dict(), "hours": hours}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        try:
            if document["format"] != FORMAT:
                raise InvalidMatrix(f"the format is {document['format']!r}, not {FORMAT!r}. Learn the matrices again.")
            hours = [None if matrix is None else TransitionMatrix.from_dict(matrix) for matrix in document["hours"]]
            return cls(TransitionMatrix.from_dict(document["overall"]), hours)
        except (KeyError, TypeError) as cause:
            raise InvalidMatrix(f"these are not hourly matrices: {cause!r}. Write them with to_json().") from cause

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        try:
            document = json.loads(text)
        except ValueError as cause:
            raise InvalidMatrix(f"this is not JSON: {cause}. Write the matrices with to_json().") from cause
        return cls.from_dict(document)
