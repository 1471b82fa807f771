"""How long a text stays in the window: a number of batches, or a duration."""

import re
from dataclasses import dataclass
from typing import Self

from elastic.durations import parse_duration_ms
from elastic.errors import InvalidSetting


@dataclass(frozen=True)
class Span:
    """A number of batches or of milliseconds; at least one.

    A text that arrives in batch b stays for `amount` batches from b on; one that arrives at time t leaves at
    t + `amount`.
    """

    amount: int
    in_batches: bool

    def __post_init__(self) -> None:
        if self.amount < 1:
            raise InvalidSetting("window", str(self), "it must be at least one batch or millisecond")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the span of a text such as `20 batches`, `90 seconds` or `1.5 hours`."""
        batches = re.fullmatch(r"\s*(\d+)\s*batch(?:es)?\s*", text.lower())
        if batches is not None:
            return cls(int(batches[1]), in_batches=True)
        try:
            milliseconds = parse_duration_ms(text, "window")
        except InvalidSetting:
            raise InvalidSetting("window", text, "expected a span such as '20 batches' or '90 seconds'") from None
        return cls(milliseconds, in_batches=False)

    def __str__(self) -> str:
        return f"{self.amount} batches" if self.in_batches else f"{self.amount} milliseconds"
