"""What a node measures of each of its units; the planner's work and state sizes come from here."""

from dataclasses import dataclass


@dataclass
class UnitStatistics:
    """Counted since the unit came to its node; `state_bytes` is as of its last measurement."""

    rows: int = 0
    seconds: float = 0.0
    state_bytes: int = 0

    def add(self, rows: int, seconds: float) -> None:
        self.rows += rows
        self.seconds += seconds

    def to_json(self) -> list[float]:
        return [self.rows, self.seconds, self.state_bytes]
