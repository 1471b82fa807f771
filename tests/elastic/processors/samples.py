"""Processors for the row form and the pandas form alike, and worlds that disturb them between batches."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from elastic.operators.testing import Crash, InputBatch, Rekey, Scale
from elastic.spark.processors import ProcessorTester

FORMS = ("row", "pandas")
DISTURBANCES: dict[str, Sequence[str]] = {"nothing": (), "moves": ("scale", "rekey"), "crashes": ("crash",)}
_NODES = (3, 1, 4, 2)
_TASKS = 16


class Processor(StatefulProcessor):
    """Hides from its subclasses whether rows or frames come and go."""

    def __init__(self, form: str = "row") -> None:
        self.pandas = form == "pandas"

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle

    def values(self, rows: Iterator[Any], column: str) -> list[Any]:
        if self.pandas:
            return [value for frame in rows for value in frame[column].tolist()]
        return [row[column] for row in rows]

    def emit(self, **columns: Any) -> Any:
        return pd.DataFrame({name: [value] for name, value in columns.items()}) if self.pandas else Row(**columns)

    def close(self) -> None:
        pass


class CountAbove(Processor):
    """Counts rows of a key, and how many temperatures were above a limit in all batches."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        super().init(handle)
        self.violations = handle.getValueState("violations", "count int")
        self.unused = handle.getValueState("unused", "count int")
        handle.deleteIfExists("unused")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        temperatures = self.values(rows, "temperature")
        known = (self.violations.get() or (0,))[0]
        total = known + sum(value > 100 for value in temperatures)
        self.violations.update((total,))
        yield self.emit(id=key[0], n=len(temperatures), violations=total)


READINGS = "id string, temperature int"
COUNTED = "id string, n long, violations long"


def readings(*pairs: tuple[Any, int]) -> list[dict[str, Any]]:
    return [{"id": key, "temperature": value} for key, value in pairs]


class World:
    """A tester with the disturbance of one test between all batches."""

    def __init__(self, disturbance: str, processor: Any, output: Any, **options: Any) -> None:
        options = {"key": "id", "schema": READINGS, "tasks": _TASKS, **options}
        self.tester = ProcessorTester(processor, output, pandas=getattr(processor, "pandas", False), **options)
        self._disturbances = DISTURBANCES[disturbance]
        self._batches = 0

    def run(self, rows: Any = (), keys: Sequence[Any] = (), **times: int) -> list[dict[str, Any]]:
        """Run a batch after a disturbance; `keys` are those that move. Returns the rows in an order of their own."""
        if self._batches:
            for kind in self._disturbances:
                self._disturb(kind, keys)
        self._batches += 1
        return in_order(self.tester.run([InputBatch(rows, **times)]))

    def state(self, key: Any, name: str) -> Any:
        return self.tester.state(key, name)

    def _disturb(self, kind: str, keys: Sequence[Any]) -> None:
        if kind == "scale":
            self.tester.run([Scale(_NODES[self._batches % len(_NODES)])])
        elif kind == "crash":
            self.tester.run([Crash(node) for node in self.tester.tester.assignment.nodes])
        elif kind == "rekey" and keys:
            self.tester.run([Rekey({key: (5 * self._batches + place) % _TASKS for place, key in enumerate(keys)})])


def in_order(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return sorted(map(dict, rows), key=repr)
