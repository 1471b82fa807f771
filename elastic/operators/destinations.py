"""Where yielded rows go, if not where plain rows go."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToSink:
    """Rows for the sink, in the operator's `output_schema`."""

    rows: Any


@dataclass(frozen=True, slots=True)
class ToNext:
    """Rows for the next stage, in the operator's `next_schema`, or its `output_schema` if it has none."""

    rows: Any


@dataclass(frozen=True, slots=True)
class ToSelf:
    """Rows that come back to this operator in the next round, routed by its key, in its input schema."""

    rows: Any
