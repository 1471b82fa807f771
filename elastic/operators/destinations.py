"""Wrappers of emitted rows that name their destination. Pickled operators refer to this module by name."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToSink:
    """Rows for the sink, in the operator's `output_schema`."""

    rows: Any


@dataclass(frozen=True, slots=True)
class ToNext:
    """Rows for the stages that read this one, in the operator's `next_schema`, or its `output_schema` if it has none.

    With `to`, the name of one of these stages, they are for that stage only.
    """

    rows: Any
    to: str | None = None


@dataclass(frozen=True, slots=True)
class ToSelf:
    """Rows for this operator in the next round, routed by its key, in its input schema."""

    rows: Any
