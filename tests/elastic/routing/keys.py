"""Key columns of every type, with the special values of each."""

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa

# A NaN with other bits than Python's own; all of them are one key.
ODD_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000123))[0]
ODD_FLOAT_NAN = struct.unpack("<f", struct.pack("<I", 0x7FC00123))[0]

TEXTS = ["", "a", "abcd", "abcdefgh", "x" * 31, "y" * 32, "z" * 33, "q" * 1000, "\0", "ключ", "键值", "🦊", "e\u0301"]


def whole_numbers(bits: int, rows: int, random: np.random.Generator) -> list[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return [0, 1, -1, low, high, *random.integers(low, high, rows, endpoint=True).tolist()]


def floats(odd_nan: float, rows: int, random: np.random.Generator) -> list[float]:
    special = [0.0, -0.0, float("nan"), odd_nan, -odd_nan, float("inf"), float("-inf"), 1e-45, -1e-45, 1.5]
    return [*special, *(random.standard_normal(rows) * 10.0 ** random.integers(-30, 30, rows)).tolist()]


def texts(rows: int, random: np.random.Generator) -> list[str]:
    letters = "".join(map(chr, random.integers(32, 0x2FFF, 10_000).tolist()))
    starts, lengths = random.integers(0, 9_900, rows).tolist(), random.integers(0, 70, rows).tolist()
    return [*TEXTS, *(letters[start : start + length] for start, length in zip(starts, lengths, strict=True))]


def decimals(digits: int, scale: int, rows: int, random: np.random.Generator) -> list[Decimal]:
    unscaled = [0, 1, -1, 127, 128, -128, -129, 255, 256, 10**digits - 1, 1 - 10**digits]
    numerals = "".join(map(str, random.integers(0, 10, 1000)))
    starts, lengths = random.integers(0, 900, rows).tolist(), random.integers(1, digits + 1, rows).tolist()
    signs = random.choice([-1, 1], rows).tolist()
    for start, length, sign in zip(starts, lengths, signs, strict=True):
        unscaled.append(sign * int(numerals[start : start + length]))
    return [Decimal(f"{number}e-{scale}") for number in unscaled]


def dates(rows: int, random: np.random.Generator) -> list[date]:
    return [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)] + [
        date(1970, 1, 1) + timedelta(days=int(days)) for days in random.integers(-100_000, 100_000, rows)
    ]


def instants(rows: int, random: np.random.Generator) -> list[datetime]:
    start = datetime(1970, 1, 1, tzinfo=UTC)
    micros = [0, -1, 1, *random.integers(-(10**15), 4 * 10**15, rows).tolist()]
    return [start + timedelta(microseconds=number) for number in micros]


Maker = Callable[[int, np.random.Generator], list[object]]

KEYS: dict[str, tuple[pa.DataType, Maker]] = {
    "bool": (pa.bool_(), lambda rows, random: random.integers(0, 2, rows).astype(bool).tolist()),
    "int8": (pa.int8(), lambda rows, random: [*whole_numbers(8, rows, random)]),
    "int16": (pa.int16(), lambda rows, random: [*whole_numbers(16, rows, random)]),
    "int32": (pa.int32(), lambda rows, random: [*whole_numbers(32, rows, random)]),
    "int64": (pa.int64(), lambda rows, random: [*whole_numbers(64, rows, random)]),
    "float": (pa.float32(), lambda rows, random: [*floats(ODD_FLOAT_NAN, rows, random)]),
    "double": (pa.float64(), lambda rows, random: [*floats(ODD_NAN, rows, random)]),
    "string": (pa.string(), lambda rows, random: [*texts(rows, random)]),
    "binary": (pa.binary(), lambda rows, random: [text.encode() for text in texts(rows, random)]),
    "date": (pa.date32(), lambda rows, random: [*dates(rows, random)]),
    "timestamp": (pa.timestamp("us", "UTC"), lambda rows, random: [*instants(rows, random)]),
    "local timestamp": (
        pa.timestamp("us"),
        lambda rows, random: [instant.replace(tzinfo=None) for instant in instants(rows, random)],
    ),
    "decimal(9, 2)": (pa.decimal128(9, 2), lambda rows, random: [*decimals(9, 2, rows, random)]),
    "decimal(18, 0)": (pa.decimal128(18, 0), lambda rows, random: [*decimals(18, 0, rows, random)]),
    "decimal(19, 3)": (pa.decimal128(19, 3), lambda rows, random: [*decimals(19, 3, rows, random)]),
    "decimal(38, 10)": (pa.decimal128(38, 10), lambda rows, random: [*decimals(38, 10, rows, random)]),
}

PAIR = pa.struct([("number", pa.int32()), ("text", pa.string())])
NESTED = pa.struct([("pair", PAIR), ("double", pa.float64())])


def key_columns(rows: int, seed: int) -> pa.Table:
    """One column of each type, structs too, each row of which is null now and then."""
    random = np.random.default_rng(seed)
    columns = {}
    for name, (kind, make) in KEYS.items():
        values = make(rows, random)
        columns[name] = pa.array(values[:rows], kind, mask=random.random(rows) < 0.05)
    pair = _structs([columns["int32"], columns["string"]], PAIR, random)
    columns["struct"] = pair
    columns["nested struct"] = _structs([pair, columns["double"]], NESTED, random)
    return pa.table(columns)


def _structs(fields: list[pa.Array], kind: pa.DataType, random: np.random.Generator) -> pa.Array:
    mask = pa.array(random.random(len(fields[0])) < 0.05)
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)
