"""Combining: senders reduce rows with the operator's own `combine`, or partials with its `merge`, before they send."""

from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from elastic.errors import CombineDropsCostKey, CombineFailed, InvalidOutput
from elastic.operators.operator import Operator
from elastic.operators.quarantine import format_traceback
from elastic.operators.rows import match_nullability


@dataclass(frozen=True)
class Combiner:
    """An operator's `combine` with a check of its output; sent to all senders of rows to that operator.

    `method` is "merge" for an operator that gets partials of a partial stage.
    """

    operator: Operator
    name: str
    method: str = "combine"
    cost_key: tuple[str, ...] = ()  # of a shuffled stage: its columns are kept as those of the key are

    @classmethod
    def of(cls, operator: Operator, name: str, method: str = "combine", cost_key: tuple[str, ...] = ()) -> Self | None:
        """Return the combiner of an operator; None if it does not override `combine`, so that nothing needs sending."""
        return None if type(operator).combine is Operator.combine else cls(operator, name, method, cost_key)

    def check(self, schema: pa.Schema) -> None:
        """Raise `CombineDropsCostKey` if no rows of this schema, combined, have no cost key of the same type."""
        try:
            self(schema.empty_table())
        except CombineFailed as error:
            reason = f"{self.method} fails for a table without rows"
            raise CombineDropsCostKey(self.name, self.cost_key, reason) from error
        except InvalidOutput as error:
            raise CombineDropsCostKey(self.name, self.cost_key, error.why) from error

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Combine rows; raises `CombineFailed` or `InvalidOutput`, since rows cannot be quarantined at the sender."""
        try:
            combined = getattr(self.operator, self.method)(rows)
        except MemoryError:
            raise
        except Exception as error:  # a user's operator may raise anything
            raise CombineFailed(self.name, format_traceback(error), self.method) from error
        if not isinstance(combined, pa.Table):
            raise InvalidOutput(
                self.name, f"{self.method} returned a {type(combined).__name__} instead of an Arrow table"
            )
        for column in (*self.operator.key, *self.cost_key):
            if column not in combined.schema.names or combined.schema.field(column).type != rows.field(column).type:
                kind = "key" if column in self.operator.key else "cost key"
                raise InvalidOutput(self.name, f"{self.method} did not keep the {kind} column {column!r} and its type")
        # Whether columns may be null must not depend on whether the operator found anything to combine.
        return match_nullability(combined, pa.schema([field.with_nullable(True) for field in combined.schema]))
