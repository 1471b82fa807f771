"""Read logs from CSV and Parquet files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from mdp.errors import InvalidLog
from mdp.learning.logs import Floats, Log, Times

_BYTES_AT_ONCE = 16 * 1024 * 1024
_RECORDS_AT_ONCE = 1_000_000

FORMATS = (".csv", ".csv.gz", ".parquet")
SECONDS = r"^[+-]?\d+(\.\d*)?$"
HAS_ZONE = r":\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$"


def read_log(
    paths: str | Path | Sequence[str | Path],
    *,
    time_column: str = "timestamp",
    load_column: str | None = None,
    nodes_column: str | None = None,
) -> Log:
    """Read one or several files or folders, in this order; give either `load_column` or `nodes_column`.

    Times are text (ISO 8601; with a zone they become UTC), timestamps, or numbers: seconds since 1970.
    """
    holds, value_column = choose_column(load_column, nodes_column)
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    files = [file for path in listed for file in list_log_files(Path(path))]
    parts = [_columns(file, time_column, value_column) for file in files]
    if not parts:
        raise InvalidLog("no log was named. Give at least one file.")
    times, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Log(times, values, holds, format_source(listed))


def choose_column(load_column: str | None, nodes_column: str | None) -> tuple[str, str]:
    """The kind of values in the log, and their column."""
    if load_column is not None and nodes_column is None:
        return "load", load_column
    if nodes_column is not None and load_column is None:
        return "nodes", nodes_column
    raise InvalidLog("a log holds loads or node counts. Name one column, either load_column or nodes_column.")


def format_source(paths: Sequence[str | Path]) -> str:
    return ", ".join(str(path) for path in paths)


def list_log_files(path: Path) -> list[Path]:
    """The file, or the files of a folder by name; without hidden files and markers, like Spark."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.name.endswith(FORMATS) and file.name[0] not in "._")
    else:
        files = [path] if path.is_file() and path.name.endswith(FORMATS) else []
    if not files:
        raise InvalidLog(f"there is no log at {path}. Give a {', '.join(FORMATS)} file, or a folder of such files.")
    return files


def missing_column_error(name: str, file: object, known: Sequence[str]) -> InvalidLog:
    return InvalidLog(f"{file} has no column {name!r}. It has {', '.join(known)}: name one of these.")


def unreadable_error(what: str, value: object, file: object) -> InvalidLog:
    wanted = "a time such as 2015-02-26 21:42:53" if what == "time" else "a number"
    found = f"no {what}" if value is None else f"the {what} {value!r}"
    return InvalidLog(f"{file} has {found} where {wanted} belongs. Fix or remove that record.")


def _columns(file: Path, time_column: str, value_column: str) -> tuple[Times, Floats]:
    """Read in pieces, so that a file may be larger than memory; keeps 16 bytes per record."""
    times, values = [np.empty(0, "datetime64[us]")], [np.empty(0)]
    try:
        for piece in _pieces(file, [time_column, value_column]):
            times.append(_times(piece.column(time_column), file))
            values.append(_numbers(piece.column(value_column), file))
    except pa.ArrowInvalid as cause:
        raise InvalidLog(f"{file} cannot be read: {cause}. Fix or remove it.") from cause
    return np.concatenate(times), np.concatenate(values)


def _pieces(file: Path, columns: list[str]) -> Iterator[Any]:
    """The two columns; those of a CSV as text, so that values are parsed here and not guessed by the reader."""
    if file.name.endswith(".parquet"):
        with pa.parquet.ParquetFile(file) as parquet:
            _check_known(columns, parquet.schema_arrow.names, file)
            yield from parquet.iter_batches(batch_size=_RECORDS_AT_ONCE, columns=columns)
        return
    with pa.csv.open_csv(file) as head:
        _check_known(columns, head.schema.names, file)
    convert = pa.csv.ConvertOptions(
        include_columns=columns,
        column_types=dict.fromkeys(columns, pa.string()),
        strings_can_be_null=True,
        null_values=[""],
    )
    with pa.csv.open_csv(file, pa.csv.ReadOptions(block_size=_BYTES_AT_ONCE), convert_options=convert) as reader:
        yield from reader


def _check_known(columns: Sequence[str], known: Sequence[str], file: Path) -> None:
    for name in columns:
        if name not in known:
            raise missing_column_error(name, file, known)


def _times(column: Any, file: Path) -> Times:
    _check_there("time", column, file)
    kind = column.type
    if pa.types.is_timestamp(kind):
        read = pc.cast(column, pa.timestamp("us", kind.tz), safe=False)  # kept in UTC inside, whatever the zone
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        read = _times_of_text(column, file)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        read = _times_of_seconds(column)
    elif pa.types.is_date(kind):
        read = pc.cast(column, pa.timestamp("us"))
    else:
        raise InvalidLog(f"the times in {file} are {kind}. Give text, timestamps, or seconds since 1970.")
    times: Times = np.asarray(pc.cast(read, pa.int64())).view("datetime64[us]")
    return times


def _times_of_text(column: Any, file: Path) -> Any:
    """Parse ISO 8601 with or without a zone, or seconds since 1970; fast if all are ISO 8601 without a zone."""
    try:
        return pc.cast(column, pa.timestamp("us"))
    except pa.ArrowInvalid:
        return _times_of_mixed_text(column, file)


def _times_of_mixed_text(column: Any, file: Path) -> Any:
    seconds = pc.match_substring_regex(column, SECONDS)
    zoned = pc.match_substring_regex(column, HAS_ZONE)
    plain = pc.invert(pc.or_(seconds, zoned))
    utc = _cast(pc.if_else(zoned, column, None), pa.timestamp("us", "UTC"), "time", file)
    return pc.coalesce(
        _cast(pc.if_else(plain, column, None), pa.timestamp("us"), "time", file),
        pc.cast(pc.cast(utc, pa.int64()), pa.timestamp("us")),
        _times_of_seconds(_cast(pc.if_else(seconds, column, None), pa.float64(), "time", file)),
    )


def _times_of_seconds(column: Any) -> Any:
    micros = pc.round(pc.multiply(pc.cast(column, pa.float64()), 1e6))
    return pc.cast(pc.cast(micros, pa.int64(), safe=False), pa.timestamp("us"))


def _numbers(column: Any, file: Path) -> Floats:
    _check_there("value", column, file)
    return np.asarray(_cast(column, pa.float64(), "value", file), np.float64)


def _check_there(what: str, column: Any, file: Path) -> None:
    if column.null_count:
        raise unreadable_error(what, None, file)


def _cast(column: Any, kind: Any, what: str, file: Path) -> Any:
    try:
        return pc.cast(column, kind)
    except pa.ArrowInvalid:
        raise unreadable_error(what, _first_bad(column, kind), file) from None


def _first_bad(column: Any, kind: Any) -> Any:
    """Find the first value that cannot be cast, by bisection: all before `good` can, not all before `bad`."""
    good, bad = 0, len(column)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            pc.cast(column.slice(good, middle - good), kind)
        except pa.ArrowInvalid:
            bad = middle
        else:
            good = middle
    return column[good].as_py()
