"""The edges of a graph: how the rows of an input or of a stage become rows of the stage that reads them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from elastic.errors import SchemasDoNotFit, UnknownColumn
from elastic.operators.joins.sides import INPUT


@dataclass(frozen=True)
class Source:
    """A source of a stage: an input or another stage, with the schema of its rows.

    `key` are the columns of the source that become the key of the stage, in its order; none if they have its names.
    `own_key` is what an input declares as its key, which counts where the names leave it open.
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...] = ()
    own_key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Feed:
    """Brings the rows of one source into the schema of a stage.

    `columns` has for each column of the stage that of the source, None for one that it lacks. All columns of the source
    stay under their names; a key of another name is added. The source's name is in the column `tag`, if the stage has
    several sources.
    """

    source: str
    schema: pa.Schema | None = None  # None: rows are right as they are
    columns: tuple[str | None, ...] = ()
    tag: str | None = None

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return the rows as the stage wants them. Costs the columns that are added, and no copy."""
        if self.schema is None:
            return rows
        arrays = []
        for field, column in zip(self.schema, self.columns, strict=True):
            if column is not None:
                arrays.append(rows.column(column))
            elif field.name == self.tag:
                arrays.append(pa.repeat(pa.scalar(self.source, pa.string()), rows.num_rows))
            else:
                arrays.append(pa.nulls(rows.num_rows, field.type))
        return pa.Table.from_arrays(arrays, schema=self.schema)


def connect(stage: str, key: tuple[str, ...], sources: Sequence[Source]) -> tuple[pa.Schema, tuple[Feed, ...]]:
    """Return the schema of the rows of a stage, and a feed from each of its sources.

    Rows of several sources have the columns of all by name, null where a source has none, and the column `input` with
    the name of the source. Raises `SchemasDoNotFit` if that is not possible.
    """
    if len(sources) == 1:
        [only] = sources
        mapping = _map_key(stage, key, only, is_alone=True)
        if not mapping:
            return only.schema, (Feed(only.name),)
    mappings = [_map_key(stage, key, source, is_alone=len(sources) == 1) for source in sources]
    fields: dict[str, tuple[pa.DataType, str]] = {}
    for source, mapping in zip(sources, mappings, strict=True):
        of_source = {field.name: field.type for field in source.schema}
        of_source |= {name: source.schema.field(column).type for name, column in mapping.items()}
        for name, kind in of_source.items():
            known, other = fields.setdefault(name, (kind, source.name))
            if known != kind:
                raise SchemasDoNotFit(
                    stage,
                    f"column {name!r} has type {known} in {other!r} and {kind} in {source.name!r}",
                    f"Give it one type, or rename it: Input(..., columns={{'{source.name}_{name}': {name!r}, ...}})",
                )
    tag = INPUT if len(sources) > 1 else None
    if tag in fields:
        raise SchemasDoNotFit(
            stage,
            f"{fields[INPUT][1]!r} has a column {INPUT!r}, which names the source of each row",
            "Give the column another name",
        )
    types = [(name, kind) for name, (kind, _) in fields.items()]
    schema = pa.schema([*types, *([(tag, pa.string())] if tag else [])])
    feeds = []
    for source, mapping in zip(sources, mappings, strict=True):
        columns = tuple(mapping.get(name, name if name in source.schema.names else None) for name in schema.names)
        feeds.append(Feed(source.name, schema, columns, tag))
    return schema, tuple(feeds)


def _map_key(stage: str, key: tuple[str, ...], source: Source, *, is_alone: bool) -> dict[str, str]:
    """Return by key column of the stage the column of the source that it is taken from, if that has another name."""
    has_names = all(column in source.schema.names for column in key)
    given = source.key
    if not given and source.own_key and source.own_key != key:
        if has_names and not is_alone:
            raise SchemasDoNotFit(
                stage,
                f"it is keyed by {_join(key)}, and {source.name!r} has that column, but its key is "
                f"{_join(source.own_key)}",
                f"Name which of them it is, with inputs={{{source.name!r}: {_show(source.own_key)}, ...}} and a key of "
                "another name, or leave the key of the input out",
            )
        given = () if has_names else source.own_key
    if not given:
        return {}
    if len(given) != len(key):
        raise SchemasDoNotFit(
            stage,
            f"its key has {len(key)} columns, and that of {source.name!r} has {len(given)}",
            "Give both the same number of columns",
        )
    mapping = {name: column for name, column in zip(key, given, strict=True) if name != column}
    for name, column in mapping.items():
        if column not in source.schema.names:
            raise UnknownColumn(column, source.schema.names)
        if name in source.schema.names:
            raise SchemasDoNotFit(
                stage,
                f"column {column!r} of {source.name!r} becomes the key {name!r}, but {source.name!r} has a column of "
                "that name already",
                f"Name the key of stage {stage!r} otherwise, or rename the column",
            )
    return mapping


def _join(columns: Sequence[str]) -> str:
    return ", ".join(map(repr, columns))


def _show(columns: tuple[str, ...]) -> str:
    return repr(columns[0]) if len(columns) == 1 else repr(columns)
