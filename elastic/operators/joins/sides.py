"""The inputs of a join: which rows are of which input, and which of their columns are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastic.errors import InvalidJob, InvalidSetting, UnknownColumn

How: TypeAlias = Literal["inner", "left", "right", "full"]

INPUT = "input"  # the column that names the input of a row


@dataclass(frozen=True)
class Side:
    """One input of a join: its name, the column of its event time, and the columns that results have of it.

    `columns` are names, or a mapping from names in the results to names in the rows, for columns of both inputs that
    have the same name. The key columns are in the results anyway.
    """

    name: str
    time: str | None
    columns: Mapping[str, str]

    def __init__(self, name: str, *, time: str | None = None, columns: Sequence[str] | Mapping[str, str] = ()) -> None:
        if isinstance(columns, str):
            columns = (columns,)
        mapping = dict(columns) if isinstance(columns, Mapping) else {column: column for column in columns}
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "columns", mapping)

    def __repr__(self) -> str:
        return f"Side({self.name!r})"

    def schema(self, rows: pa.Schema) -> pa.Schema:
        """Return the columns that results have of this input; raises `UnknownColumn`."""
        for column in self.columns.values():
            if column not in rows.names:
                raise UnknownColumn(column, rows.names)
        return pa.schema([pa.field(name, rows.field(column).type) for name, column in self.columns.items()])

    def select(self, rows: pa.Table) -> pa.Table:
        """Return these columns by their names in the results."""
        arrays = [rows.column(column) for column in self.columns.values()]
        if not arrays:
            # A table without columns has no rows in Arrow.
            return _count_only(rows.num_rows)
        return pa.Table.from_arrays(arrays, list(self.columns))

    def mask(self, inputs: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return which rows are of this input."""
        found = pc.fill_null(pc.equal(inputs, self.name), False)
        return np.asarray(found.to_numpy(), np.bool_)


def _count_only(rows: int) -> pa.Table:
    return pa.table({_ROW: pa.nulls(rows, pa.bool_())})


_ROW = "elastic.row"


def stored_schema(side: Side, rows: pa.Schema) -> pa.Schema:
    """Return the schema of what `Side.select` returns."""
    return side.schema(rows) if side.columns else pa.schema([(_ROW, pa.bool_())])


def check_how(how: str) -> None:
    if how not in get_args(How):
        raise InvalidSetting("how", how, "expected 'inner', 'left', 'right' or 'full'")


def check_sides(left: Side, right: Side, rows: pa.Schema, tag: str, taken: Sequence[str]) -> None:
    """Raise `InvalidJob` if rows do not name their input, or if two columns of the results have the same name."""
    if tag not in rows.names:
        raise UnknownColumn(tag, rows.names)
    if not pa.types.is_string(rows.field(tag).type):
        raise InvalidJob(f"column {tag!r} of type {rows.field(tag).type} does not name inputs. Make it a string.")
    if left.name == right.name:
        raise InvalidJob(f"both inputs of the join are named {left.name!r}. Give each a name of its own.")
    names = [*taken, *left.columns, *right.columns]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise InvalidJob(
            f"results of the join would have the columns {duplicates} twice. Rename some: "
            "Side(..., columns={'name in results': 'name in rows'})."
        )


def split_sides(rows: pa.Table, tag: str, left: Side, right: Side) -> tuple[Any, Any]:
    """Return a mask of the rows of each input; raises `InvalidJob` for a row of another one."""
    inputs = rows.column(tag)
    masks = left.mask(inputs), right.mask(inputs)
    if not (masks[0] | masks[1]).all():
        unknown = inputs.filter(pa.array(~(masks[0] | masks[1])))[0].as_py()
        raise InvalidJob(f"a row is of input {unknown!r}, not of {left.name!r} or {right.name!r}. Correct its {tag!r}.")
    return masks
