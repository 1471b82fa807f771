"""Values of states: what Spark's state store makes of them between a write and a read.

Spark pickles a value, lets the JVM convert it to the declared type, and returns what the JVM makes of it: an integer
in a column of doubles becomes null, an integer too large for its column wraps around, a float is rounded to four bytes,
and anything in a string column becomes text. Processors rely on that, so the same happens here, without a JVM.

The stored form is immutable: tuples for arrays and structs, tuples of pairs for maps, numbers for dates and times.
"""

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any, TypeAlias

import numpy as np
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    Row,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from elastic.errors import InvalidStateCall

Convert: TypeAlias = Callable[[Any], Any]
Stored: TypeAlias = tuple[Any, ...]

_LONG_BITS = 64
_INTEGER_BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: _LONG_BITS}
_TEMPORAL = (DateType, TimestampType, TimestampNTZType)
_FRACTIONS = (DoubleType, FloatType)
_SEQUENCES = (tuple, list)  # a union of them would be made anew for every value
_NAN_KEY = "NaN"  # in keys of maps: a text equals itself, also after a restart
_PLAIN_EXPONENTS = range(-3, 7)  # those that Java writes without an exponent


class Codec:
    """Stores and loads the tuples of one schema.

    `load` is None if the stored form is the value, which is so for all schemas of numbers, texts and booleans.
    `are_keys` says that they are keys of a map, among which not a number is one key, as in Spark, and not many.
    """

    def __init__(self, schema: StructType, variable: str, *, are_keys: bool = False) -> None:
        self.schema = schema
        self._variable = variable
        self._stores = [_store(field.dataType, are_keys) for field in schema]
        self._only = self._stores[0] if len(self._stores) == 1 else None
        loads = [_load(field.dataType, are_keys) for field in schema]
        self.load: Convert | None = _load_tuple(loads) if any(loads) else None

    def store(self, value: Any) -> Stored:
        """Return the stored form of a value: a tuple with one entry per column."""
        if type(value) is not tuple or len(value) != len(self._stores):
            self._check(value)
        if self._only is not None:
            return (self._only(value[0]),)
        return tuple([store(entry) for store, entry in zip(self._stores, value, strict=True)])

    def _check(self, value: Any) -> None:
        if not isinstance(value, _SEQUENCES):
            raise InvalidStateCall(
                self._variable,
                f"a value must be a tuple with one entry per column, got {type(value).__name__} {value!r}",
            )
        if len(value) != len(self._stores):
            raise InvalidStateCall(
                self._variable, f"{value!r} has {len(value)} entries for the {len(self._stores)} columns of its schema"
            )


def _store(kind: DataType, are_keys: bool = False) -> Convert:
    """Return the function that stores values of a type."""
    if type(kind) in _INTEGER_BITS:
        return _store_integer(_INTEGER_BITS[type(kind)])
    if isinstance(kind, DecimalType):
        return _store_decimal(kind.precision, kind.scale)
    if isinstance(kind, _TEMPORAL):
        return _store_temporal(kind)
    if isinstance(kind, ArrayType):
        return _store_array(_store(kind.elementType, are_keys))
    if isinstance(kind, MapType):
        return _store_map(_store(kind.keyType, are_keys), _store(kind.valueType, are_keys))
    if isinstance(kind, StructType):
        return _store_struct(kind, are_keys)
    if are_keys and isinstance(kind, _FRACTIONS):
        return _store_fraction_of_key(_STORES[type(kind)])
    return _STORES[type(kind)]


def _load(kind: DataType, are_keys: bool = False) -> Convert | None:
    """Return the function that loads values of a type; None if the stored form is the value."""
    if isinstance(kind, _TEMPORAL):
        return kind.fromInternal
    if isinstance(kind, ArrayType):
        element = _or_identity(_load(kind.elementType, are_keys))
        return lambda stored: None if stored is None else [element(entry) for entry in stored]
    if isinstance(kind, MapType):
        key, value = _or_identity(_load(kind.keyType, are_keys)), _or_identity(_load(kind.valueType, are_keys))
        return lambda stored: None if stored is None else {key(name): value(entry) for name, entry in stored}
    if isinstance(kind, StructType):
        names, loads = kind.names, [_or_identity(_load(field.dataType, are_keys)) for field in kind]
        return lambda stored: (
            None if stored is None else make_row(names, [f(v) for f, v in zip(loads, stored, strict=True)])
        )
    if are_keys and isinstance(kind, _FRACTIONS):
        return _load_fraction_of_key
    return None


def make_row(names: Sequence[str], values: Sequence[Any]) -> Row:
    """Return a `Row`; several times as fast as Spark's constructor."""
    row: Row = tuple.__new__(Row, values)
    row.__dict__["__fields__"] = names  # around the slow __setattr__ of Row
    return row


def _load_tuple(loads: Sequence[Convert | None]) -> Convert:
    functions = [_or_identity(load) for load in loads]
    return lambda stored: tuple([load(entry) for load, entry in zip(functions, stored, strict=True)])


def _or_identity(convert: Convert | None) -> Convert:
    return convert if convert is not None else lambda value: value


def _plain(value: Any) -> Any:
    """Return a Python value for one of NumPy or pandas."""
    if isinstance(value, np.generic):
        return value.item()
    return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value


def _store_boolean(value: Any) -> Any:
    value = _plain(value)
    return value if type(value) is bool else None


def _store_integer(bits: int) -> Convert:
    lowest, highest, span = -(1 << bits - 1), (1 << bits - 1) - 1, 1 << bits

    def store(value: Any) -> Any:
        if type(value) is int and lowest <= value <= highest:
            return value
        value = _plain(value)
        if type(value) is not int or not -(1 << _LONG_BITS - 1) <= value < 1 << _LONG_BITS - 1:
            return None
        return (value - lowest) % span + lowest

    return store


def _store_double(value: Any) -> Any:
    if type(value) is float:
        return value
    value = _plain(value)
    return value if type(value) is float else None


def _store_float(value: Any) -> Any:
    value = _store_double(value)
    if value is None:
        return None
    with np.errstate(over="ignore"):  # beyond four bytes it is infinite, as in the JVM
        return float(np.float32(value))


def _store_fraction_of_key(store: Convert) -> Convert:
    def store_key(value: Any) -> Any:
        stored = store(value)
        return _NAN_KEY if stored is not None and math.isnan(stored) else stored

    return store_key


def _load_fraction_of_key(stored: Any) -> Any:
    return math.nan if stored == _NAN_KEY else stored


def _store_string(value: Any) -> Any:
    return value if type(value) is str or value is None else _to_java_text(value)


def _to_java_text(value: Any) -> str:
    """Return a value as Java writes it, whose texts get into columns of strings."""
    value = _plain(value)
    if value is None:
        return "null"
    if type(value) is bool:
        return str(value).lower()
    if type(value) is float:
        return _to_java_fraction(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_to_java_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_to_java_text(key)}={_to_java_text(entry)}' for key, entry in value.items())}}}"
    return str(value)


def _to_java_fraction(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    power = len(digits) + int(exponent) - 1
    if power in _PLAIN_EXPONENTS or not value:
        return f"{value:.{max(-int(exponent), 1)}f}"
    fraction = "".join(map(str, digits[1:])).rstrip("0")
    return f"{'-' if sign else ''}{digits[0]}.{fraction or '0'}E{power}"


def _store_binary(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return bytes(value) if isinstance(value, bytes | bytearray) else None


def _store_decimal(precision: int, scale: int) -> Convert:
    quantum = Decimal(1).scaleb(-scale)

    def store(value: Any) -> Any:
        if not isinstance(value, Decimal):
            return None
        with localcontext() as context:
            context.prec = 2 * precision + scale + 1
            rounded = value.quantize(quantum, ROUND_HALF_UP)
        if len(rounded.as_tuple().digits) > precision:
            raise ValueError(f"{value} does not fit into decimal({precision},{scale}). Declare more digits.")
        return rounded

    return store


def _store_temporal(kind: DataType) -> Convert:
    return lambda value: None if value is None else kind.toInternal(_plain(value))


def _store_array(element: Convert) -> Convert:
    def store(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = value.tolist()
        return tuple(map(element, value)) if isinstance(value, _SEQUENCES) else None

    return store


def _store_map(key: Convert, entry: Convert) -> Convert:
    def store(value: Any) -> Any:
        return tuple([(key(k), entry(v)) for k, v in value.items()]) if isinstance(value, dict) else None

    return store


def _store_struct(kind: StructType, are_keys: bool) -> Convert:
    names, stores = kind.names, [_store(field.dataType, are_keys) for field in kind]

    def store(value: Any) -> Any:
        if isinstance(value, dict):
            value = [value.get(name) for name in names]
        if not isinstance(value, _SEQUENCES):
            return None
        if len(value) != len(stores):
            raise ValueError(f"{value!r} has {len(value)} entries for the columns {names}. Give one entry per column.")
        return tuple([f(v) for f, v in zip(stores, value, strict=True)])

    return store


_STORES: dict[type[DataType], Convert] = {
    BooleanType: _store_boolean,
    DoubleType: _store_double,
    FloatType: _store_float,
    StringType: _store_string,
    BinaryType: _store_binary,
}
