"""How long a text stays in the window."""

import re
from dataclasses import dataclass
from typing import Self

from elastic.errors import InvalidSetting

_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)(?:es|s)?\s*")
_MILLISECONDS = {"millisecond": 1, "second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}


@dataclass(frozen=True)
class Span:
    """A number of batches, or of milliseconds; at least one of them.

    A text that arrives in batch b stays for batches b, b + 1, ... so many; one that arrives at t is gone at t + span.
    """

    amount: int
    in_batches: bool

    def __post_init__(self) -> None:
        if self.amount < 1:
            raise InvalidSetting("window", str(self), "no text would ever be in it")

    @classmethod
    def parse(cls, text: str) -> Self:
        """`"20 batches"`, `"90 seconds"`, `"1.5 hours"`."""
        match = _FORM.fullmatch(text.lower())
        unit = match[2] if match else ""
        if match and unit == "batch" and match[1].isdigit():
            return cls(int(match[1]), in_batches=True)
        if match and unit in _MILLISECONDS:
            return cls(round(float(match[1]) * _MILLISECONDS[unit]), in_batches=False)
        raise InvalidSetting("window", text, "it must be like '20 batches' or '90 seconds'")

    def __str__(self) -> str:
        return f"{self.amount} batches" if self.in_batches else f"{self.amount} milliseconds"
