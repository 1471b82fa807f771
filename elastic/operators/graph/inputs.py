"""The inputs of a job: as a user declares them, and as stages, senders and watermarks know them."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from elastic.durations import parse_duration_ms
from elastic.errors import InvalidJob, InvalidSetting, UnknownColumn
from elastic.operators.event_times import check_event_time
from elastic.operators.schemas import SchemaLike, to_schema

DEFAULT_INPUT = "input"  # the name of the only input of a job that names none


@dataclass(frozen=True)
class Input:
    """One input of a job: its rows, and what the job has to know about them.

        persons = elastic.Input(persons_df, name="persons", key="id", event_time="ts", watermark_delay="10 seconds")

    `rows` are a streaming DataFrame for `elastic.run`, tables or a `TableSource` for `elastic.local_run`, and nothing
    for an `OperatorTester`. `key` are the columns that a stage is keyed by whose own key columns have other names.
    `columns` selects columns, or renames them as a mapping from names in the job to names in the rows; `key` and
    `event_time` are names in the job. The watermark of the input is its latest event time less `watermark_delay`.

    An input with `idle_after`, such as "1 minute", is idle when it had no rows for that long in processing time. Then
    its watermark follows the least of the others, so that it holds nothing back; rows that come later may be late.
    """

    rows: Any
    name: str
    key: tuple[str, ...]
    event_time: str | None
    watermark_delay_ms: int
    idle_after_ms: int | None
    columns: Mapping[str, str]
    schema: pa.Schema | None

    def __init__(
        self,
        rows: Any = None,
        *,
        name: str = DEFAULT_INPUT,
        key: str | Sequence[str] = (),
        event_time: str | None = None,
        watermark_delay: str | None = None,
        idle_after: str | None = None,
        columns: Sequence[str] | Mapping[str, str] = (),
        schema: SchemaLike | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidJob(f"an input cannot be named {name!r}. Give a text.")
        if event_time is None and watermark_delay is not None:
            why = "a watermark needs event times. Name their column with event_time"
            raise InvalidSetting("watermark_delay", watermark_delay, why)
        if event_time is None and idle_after is not None:
            why = f"input {name!r} has no watermark to hold back. Name the column of event times with event_time"
            raise InvalidSetting("idle_after", idle_after, why)
        columns = (columns,) if isinstance(columns, str) else columns
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "key", (key,) if isinstance(key, str) else tuple(key))
        object.__setattr__(self, "event_time", event_time)
        object.__setattr__(self, "watermark_delay_ms", _parse(watermark_delay, "watermark_delay") or 0)
        object.__setattr__(self, "idle_after_ms", _parse(idle_after, "idle_after"))
        mapping = dict(columns) if isinstance(columns, Mapping) else {column: column for column in columns}
        object.__setattr__(self, "columns", mapping)
        object.__setattr__(self, "schema", None if schema is None else to_schema(schema))

    def __repr__(self) -> str:
        return f"Input(name={self.name!r})"

    def with_name(self, name: str) -> "Input":
        """Return the same input under another name."""
        named = copy.copy(self)
        object.__setattr__(named, "name", name)
        return named

    def bind(self, rows: pa.Schema) -> "InputSpec":
        """Return what the job knows of this input, whose rows have this schema; raises what `InputSpec` raises."""
        schema = self.select(rows.empty_table()).schema if self.columns else rows
        for column in self.key:
            if column not in schema.names:
                raise UnknownColumn(column, schema.names)
        return InputSpec(self.name, schema, self.key, self.event_time, self.watermark_delay_ms, self.idle_after_ms)

    def select(self, rows: pa.Table) -> pa.Table:
        """Return the columns of the job; raises `UnknownColumn`."""
        if not self.columns:
            return rows
        for column in self.columns.values():
            if column not in rows.schema.names:
                raise UnknownColumn(column, rows.schema.names)
        return pa.table({name: rows.column(column) for name, column in self.columns.items()})


@dataclass(frozen=True)
class InputSpec:
    """An input without its rows: their schema, and how its watermark follows from them.

    Raises `UnknownColumn` or `InvalidEventTime` if the schema has no event times in that column.
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...] = ()
    event_time: str | None = None
    watermark_delay_ms: int = 0
    idle_after_ms: int | None = None

    def __post_init__(self) -> None:
        if self.event_time is not None:
            check_event_time(self.schema, self.event_time)


def choose_key(inputs: Sequence[Input], key: str | Sequence[str]) -> str | Sequence[str]:
    """Return the key of stages without one of their own: the job's, else that of the first input."""
    return key or (inputs[0].key if inputs else ())


def to_input_specs(inputs: pa.Schema | Iterable[InputSpec]) -> tuple[InputSpec, ...]:
    """Return the inputs of a job in the order of their names, in which senders and clocks number them.

    A schema stands for the only input of a job.
    """
    if isinstance(inputs, pa.Schema):
        return (InputSpec(DEFAULT_INPUT, inputs),)
    specs = sorted(inputs, key=lambda spec: spec.name)
    if not specs:
        raise InvalidJob("the job has no inputs. Give at least one.")
    names = [spec.name for spec in specs]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidJob(f"two inputs are named {duplicates[0]!r}. Give each input a unique name.")
    # Alone, an input has nothing to follow.
    return tuple(specs) if len(specs) > 1 else (replace(specs[0], idle_after_ms=None),)


def _parse(duration: str | None, name: str) -> int | None:
    return None if duration is None else parse_duration_ms(duration, name)
