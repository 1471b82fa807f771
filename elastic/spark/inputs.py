"""The inputs of a job on Spark: streaming DataFrames, which one query reads as their union.

One query means one checkpoint and one number for a batch of all inputs, so the batch is committed for all or for none.
The columns of all inputs share *slots*: an input takes for each of its columns a slot of that type, and is null in the
others. So columns of the same name and other types do not clash, and a row has as few nulls as possible.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documentation uses
from pyspark.sql.types import DataType

from elastic.errors import InvalidJob, UnknownColumn
from elastic.ingest.batch_spec import INPUT_NUMBER, Slots
from elastic.operators.graph import Input
from elastic.spark import checks


def to_inputs(df: Any, event_time: str | None, watermark_delay: str | None) -> list[Input]:
    """Return the inputs that a user gave: one DataFrame, a sequence of inputs, or a mapping from names to either."""
    if isinstance(df, Input):
        found = [df]
    elif isinstance(df, Mapping):
        found = [_name(name, rows) for name, rows in df.items()]
    elif isinstance(df, Sequence) and not isinstance(df, str):
        found = list(df)
    else:
        checks.check_frame(df)
        checks.check_event_time(df, event_time, watermark_delay)
        return [Input(df, event_time=event_time, watermark_delay=watermark_delay)]
    if event_time is not None or watermark_delay is not None:
        raise InvalidJob(
            "event_time and watermark_delay are those of the only input, and inputs were given. "
            "Give each of them its own: Input(..., event_time=..., watermark_delay=...)."
        )
    for each in found:
        if not isinstance(each, Input):
            raise InvalidJob(f"a {type(each).__name__} is no input. Write Input(df, name=...) for each, or a mapping.")
        checks.check_frame(each.rows)
        selected = select(each)
        checks.check_event_time(selected, each.event_time, None)
    return found


def select(each: Input) -> DataFrame:
    """Return the columns of an input, by their names in the job; raises `UnknownColumn`."""
    frame: DataFrame = each.rows
    for column in each.columns.values():
        if column not in frame.columns:
            raise UnknownColumn(column, frame.columns)
    columns = [frame[_quote(column)].alias(name) for name, column in each.columns.items()]
    return frame.select(*columns) if columns else frame


def unite(inputs: Sequence[Input]) -> tuple[DataFrame, tuple[Slots, ...]]:
    """Return the union of the inputs, which are in the order of their numbers, and the slots of each; none for one."""
    frames = [select(each) for each in inputs]
    if len(frames) == 1:
        return frames[0], ((),)
    slots, kinds = _assign_slots(frames)
    packed = [_pack(number, *pair, kinds) for number, pair in enumerate(zip(frames, slots, strict=True))]
    return reduce(DataFrame.union, packed), slots


def _assign_slots(frames: Sequence[DataFrame]) -> tuple[tuple[Slots, ...], dict[str, DataType]]:
    """Return the slots of each input, and the type of every slot."""
    kinds: dict[str, DataType] = {}
    numbers: dict[str, int] = {}  # of types, by their JSON
    slots = []
    for frame in frames:
        taken: Counter[str] = Counter()
        of_frame = []
        for field in frame.schema:
            kind = field.dataType.json()
            slot = f"s{numbers.setdefault(kind, len(numbers))}_{taken[kind]}"
            taken[kind] += 1
            kinds[slot] = field.dataType
            of_frame.append((slot, field.name))
        slots.append(tuple(of_frame))
    return tuple(slots), kinds


def _pack(number: int, frame: DataFrame, slots: Slots, kinds: Mapping[str, DataType]) -> DataFrame:
    column_in = dict(slots)
    columns = [
        frame[_quote(column_in[slot])].alias(slot) if slot in column_in else F.lit(None).cast(kind).alias(slot)
        for slot, kind in kinds.items()
    ]
    return frame.select(F.lit(number).cast("byte").alias(INPUT_NUMBER), *columns)


def _quote(column: str) -> str:
    return f"`{column.replace('`', '``')}`"


def _name(name: str, rows: Any) -> Any:
    """Return an input of a mapping; an `Input` keeps all but its name."""
    if not isinstance(rows, Input):
        return Input(rows, name=name)
    return rows.with_name(name)
