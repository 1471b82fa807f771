"""The pandas form: Arrow to frames in bulk, and the frames that a processor emits back to Arrow."""

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.conversion import ArrowBatchTransformer, PandasToArrowConversion
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)

from elastic.errors import InvalidOutput
from elastic.spark.processors.schemas import OUTPUT_ZONE

_DTYPE_KINDS: dict[type[DataType], str] = {IntegerType: "i", LongType: "i", DoubleType: "f", BooleanType: "b"}
_WIDE = {"i": "int64", "u": "int64", "f": "float64"}


class FrameForm:
    """`transformWithStateInPandas`: a processor gets an iterator of frames and emits frames.

    A frame has at most `rows_per_frame` rows of a key, and ends with the row that fills `bytes_per_frame`; its index
    begins at 0, and it has the types that Spark's frames have: integers and floats of 64 bits, times without a zone.
    `coerces_integers` says that an integer may stand for a decimal in an emitted frame.
    """

    def __init__(
        self,
        output: StructType,
        operator: str,
        rows_per_frame: int,
        bytes_per_frame: int,
        timezone: str,
        *,
        coerces_integers: bool,
    ) -> None:
        self._output = output
        self._names = output.names
        self._operator = operator
        self._max_rows = self._rows_per_frame = rows_per_frame
        self._bytes_per_frame = bytes_per_frame
        self._timezone = timezone
        self._coerces_integers = coerces_integers

    def measure(self, rows: pa.Table) -> None:
        """Divide these rows into frames by their mean size, as Spark does."""
        if rows.nbytes:
            rows_of_bytes = -(-self._bytes_per_frame * rows.num_rows // rows.nbytes)
            self._rows_per_frame = max(1, min(self._max_rows, rows_of_bytes))

    def to_input(self, table: pa.Table) -> pd.DataFrame:
        return self._to_frame(table)

    def chunks(self, rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
        """Return what handlers get for the rows of a key, one frame after the other."""
        for begin in range(0, len(rows), self._rows_per_frame):
            chunk = rows.iloc[begin : begin + self._rows_per_frame].copy()
            chunk.index = pd.RangeIndex(len(chunk))
            yield chunk

    def collect(self, emitted: Any, out: list[Any]) -> None:
        """Run the generator of a processor, and add what it emits for a key to others, as tuples or tables."""
        if not isinstance(emitted, Iterable) or isinstance(emitted, pd.DataFrame):
            raise InvalidOutput(
                self._operator, f"a handler returned a {type(emitted).__name__} instead of an iterator of DataFrames"
            )
        for frame in emitted:
            if not isinstance(frame, pd.DataFrame):
                raise InvalidOutput(self._operator, f"it emits a {type(frame).__name__} instead of a pandas DataFrame")
            rows = self._to_tuples(frame)
            if rows is None:
                out.append(self._to_table(frame))
            else:
                out += rows

    def to_output(self, collected: list[Any]) -> list[Any]:
        """Return collected tuples and tables as the engine takes them."""
        return collected if all(type(item) is tuple for item in collected) else list(collected)

    def _to_frame(self, table: pa.Table) -> pd.DataFrame:
        series = ArrowBatchTransformer.to_pandas(table, timezone=self._timezone)
        return pd.DataFrame(
            {
                name: column.astype(_WIDE[column.dtype.kind]) if column.dtype.kind in _WIDE else column
                for name, column in zip(table.column_names, series, strict=True)
            },
            copy=False,
        )

    def _to_tuples(self, frame: pd.DataFrame) -> list[tuple[Any, ...]] | None:
        """Return the rows of a frame whose values need no conversion; None for any other frame. Much faster."""
        if list(frame.columns) != self._names:
            return None
        columns: list[list[Any]] = []
        for name, field in zip(self._names, self._output, strict=True):
            values = frame[name]
            kind = values.dtype.kind
            column = values.tolist()
            if isinstance(field.dataType, StringType):
                if kind != "O" or set(map(type, column)) - {str}:
                    return None
            elif _DTYPE_KINDS.get(type(field.dataType)) != kind or (kind == "f" and values.hasnans):
                return None
            columns.append(column)
        return list(zip(*columns, strict=True))

    def _to_table(self, frame: pd.DataFrame) -> pa.Table:
        """Convert a frame as Spark does: columns by name, or by position if they have no names."""
        named = any(isinstance(column, str) for column in frame.columns)
        missing = [name for name in self._names if name not in frame.columns] if named else []
        if len(frame.columns) and (missing or len(frame.columns) < len(self._names)):
            raise InvalidOutput(
                self._operator, f"a frame with columns {list(map(str, frame.columns))} lacks {missing or self._names}"
            )
        try:
            batch = PandasToArrowConversion.convert(
                frame,
                self._output,
                timezone=self._timezone or OUTPUT_ZONE,
                arrow_cast=True,
                assign_cols_by_name=True,
                int_to_decimal_coercion_enabled=self._coerces_integers,
            )
        except (PySparkException, pa.ArrowException, ValueError, TypeError) as error:
            raise InvalidOutput(self._operator, f"a frame does not fit the output schema: {error}") from error
        return pa.Table.from_batches([batch])
