"""Rows that are made fewer on their way to an operator, by the operator's own `combine`."""

from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from elastic.errors import CombineFailed, InvalidOutput
from elastic.operators.failures import told
from elastic.operators.operator import Operator


@dataclass(frozen=True)
class Combiner:
    """An operator's `combine`, checked; travels to whoever sends rows to that operator."""

    operator: Operator
    name: str

    @classmethod
    def of(cls, operator: Operator, name: str) -> Self | None:
        """None for an operator that takes rows as they are, so that nobody carries it around for nothing."""
        return None if type(operator).combine is Operator.combine else cls(operator, name)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Raises `CombineFailed` or `InvalidOutput`: such rows cannot be set aside, for they are not at their task."""
        try:
            combined = self.operator.combine(rows)
        except MemoryError:
            raise
        except Exception as error:  # a user's operator may raise anything
            raise CombineFailed(self.name, told(error)) from error
        if not isinstance(combined, pa.Table):
            raise InvalidOutput(self.name, f"combine gave a {type(combined).__name__} instead of an Arrow table")
        for column in self.operator.key:
            if column not in combined.schema.names or combined.schema.field(column).type != rows.field(column).type:
                raise InvalidOutput(self.name, f"combine did not keep the key column {column!r} and its type")
        return combined
