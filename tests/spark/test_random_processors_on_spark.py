"""Random calls of states on Spark's own engine and on this one: every call returns the same."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from elastic import ProcessorTester
from tests.spark.jobs import changed_conf

pytestmark = [pytest.mark.spark, pytest.mark.long]

OUTPUT = "id string, place int, call string, found string"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
KEYS, BATCHES, CALLS = 40, 3, 8

# Values by the type of their column, as Python text: fitting ones, others that become null, and others that change.
VALUES: dict[str, list[str]] = {
    "int": ["5", "None", "np.int64(9)", "2**31", "2**40", "2.5", "True", "'x'", "Decimal('3')"],
    "long": ["5", "None", "2**62", "2**63", "np.uint8(4)", "1.0"],
    "byte": ["5", "200", "-129", "None"],
    "double": ["1.5", "1", "None", "np.float32(0.1)", "float('nan')", "float('inf')", "-0.0", "'x'", "Decimal('1.5')"],
    "float": ["0.1", "1e300", "None", "np.float64(0.2)", "3"],
    "string": ["'a'", "'ü\\U0001F600'", "None", "5", "2.5", "True", "1e20", "1e-7", "123456.789", "[1.5, None]"],
    "boolean": ["True", "False", "None", "1", "np.bool_(False)"],
    "binary": ["b'ab'", "bytearray(b'x')", "None", "'text'", "5"],
    "decimal(9,2)": ["Decimal('1.005')", "Decimal('-7')", "None", "Decimal('1E+3')", "5", "1.5"],
    "date": ["date(2024, 2, 29)", "None", "date(1, 1, 1)", "datetime(2024, 2, 3, 4, 5)", "pd.Timestamp(2024, 5, 6)"],
    "timestamp": ["datetime(2024, 1, 1, 12, 0, 0, 7)", "None", "datetime(2024, 1, 1, tzinfo=UTC)"],
    "timestamp_ntz": ["datetime(1900, 1, 1)", "None", "pd.Timestamp(2024, 1, 1)"],
    "array<int>": ["[1, 2]", "[]", "None", "[None, 1]", "(3, 4)", "[1.5]", "'ab'", "[np.int64(3)]"],
    "map<string,int>": ["{'a': 1}", "{}", "None", "{'a': None, 'b': 2}", "{'z': 'z'}"],
    "struct<a:int,b:string>": ["(1, 'x')", "Row(a=1, b='x')", "{'a': 1, 'b': 'y'}", "None", "{'b': 'y'}", "[2, 'l']"],
    "array<struct<x:int,y:date>>": ["[(1, None)]", "[]", "[Row(x=1, y=date(2024, 1, 1))]", "[None]", "[{'x': 1}]"],
}
MAPS = {
    "int": "string",
    "string": "int",
    "date": "struct<a:int,b:string>",
    "double": "array<int>",
    "boolean": "double",
    "decimal(9,2)": "decimal(9,2)",
    "struct<a:int,b:string>": "timestamp",
    "array<int>": "boolean",
    "binary": "float",
}


def random_calls(chance: random.Random) -> list[str]:
    """Return calls of states, each followed by calls that read what it left."""
    calls: list[str] = []
    for _ in range(CALLS):
        kind = chance.choice(list(VALUES))
        value = f"({chance.choice(VALUES[kind])},)"
        place = list(VALUES).index(kind)
        match chance.choice(["value", "list", "map"]):
            case "value":
                state = f"values[{place}]"
                calls += [chance.choice([f"{state}.update({value})"] * 4 + [f"{state}.clear()"])]
                calls += [f"{state}.get()", f"{state}.exists()"]
            case "list":
                state = f"lists[{place}]"
                writes = [f"{state}.appendValue({value})", f"{state}.put([{value}, {value}])"]
                calls += [chance.choice([*writes, f"{state}.appendList([{value}])", f"{state}.clear()"])]
                calls += [f"list({state}.get())", f"{state}.exists()"]
            case _:
                keys = chance.choice(list(MAPS))
                state = f"maps[{list(MAPS).index(keys)}]"
                key, entry = (f"({chance.choice(VALUES[each])},)" for each in (keys, MAPS[keys]))
                writes = [f"{state}.updateValue({key}, {entry})"] * 3
                calls += [chance.choice([*writes, f"{state}.removeKey({key})", f"{state}.clear()"])]
                calls += [f"{state}.getValue({key})", f"{state}.containsKey({key})", f"{state}.exists()"]
                calls += [f"sorted({state}.{each}(), key=repr)" for each in ("iterator", "keys", "values")]
    return calls


class Calls(StatefulProcessor):
    """Makes the calls that the rows name, and emits what they return."""

    def __init__(self, pandas: bool) -> None:
        self._pandas = pandas

    def init(self, handle: Any) -> None:
        self._states = {
            "values": [handle.getValueState(f"v{n}", f"c {kind}") for n, kind in enumerate(VALUES)],
            "lists": [handle.getListState(f"l{n}", f"c {kind}") for n, kind in enumerate(VALUES)],
            "maps": [handle.getMapState(f"m{n}", f"k {keys}", f"c {v}") for n, (keys, v) in enumerate(MAPS.items())],
        }

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        from datetime import UTC, date, datetime
        from decimal import Decimal

        import numpy as np

        names = {"np": np, "pd": pd, "Row": Row, "UTC": UTC, "date": date, "datetime": datetime, "Decimal": Decimal}
        texts = [text for frame in rows for text in frame["calls"]] if self._pandas else [row.calls for row in rows]
        for text in texts:
            for place, call in enumerate(text.split("\n")):
                try:
                    found = repr(eval(call, {**names, **self._states}))  # noqa: S307 - the calls of this test
                except Exception:  # noqa: BLE001 - whichever the engine raises
                    found = "an error"
                yield self._emit(id=key[0], place=place, call=call, found=found)

    def close(self) -> None:
        """Release nothing."""

    def _emit(self, **columns: Any) -> Any:
        return pd.DataFrame({name: [value] for name, value in columns.items()}) if self._pandas else Row(**columns)


@pytest.mark.parametrize("pandas", [False, True], ids=["rows", "pandas"])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_call_of_a_state_returns_what_it_returns_on_spark(
    spark: SparkSession, tmp_path: Path, seed: int, *, pandas: bool
) -> None:
    chance = random.Random(seed)  # noqa: S311 - of a test
    batches = [[{"id": f"k{n}", "calls": "\n".join(random_calls(chance))} for n in range(KEYS)] for _ in range(BATCHES)]
    tester = ProcessorTester(Calls(pandas), OUTPUT, key="id", schema="id string, calls string", pandas=pandas)
    ours = {(n, row["id"], row["place"]): row for n, rows in enumerate(batches) for row in tester.run([rows])}

    theirs: dict[tuple[int, str, int], dict[str, Any]] = {}
    folder = tmp_path / "input"
    folder.mkdir()
    frame = spark.readStream.schema("id string, calls string").json(str(folder))
    grouped = frame.groupBy("id")
    number = 0

    def collect(rows: Any, _: int) -> None:
        theirs.update({(number, row.id, row.place): row.asDict() for row in rows.collect()})

    with changed_conf(spark, spark_sql_shuffle_partitions="2", spark_sql_streaming_stateStore_providerClass=ROCKSDB):
        run = grouped.transformWithStateInPandas if pandas else grouped.transformWithState
        streamed = run(Calls(pandas), OUTPUT, "Update", "None")
        query = streamed.writeStream.outputMode("update").foreachBatch(collect).start()
        try:
            for number, rows in enumerate(batches):
                (folder / f".{number}").write_text("\n".join(map(json.dumps, rows)))
                (folder / f".{number}").rename(folder / f"{number}.json")
                query.processAllAvailable()
        finally:
            query.stop()
    assert ours == theirs
