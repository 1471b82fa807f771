"""Tests of a processor in one process, without a JVM: batches, and nodes that join, leave and crash between them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

from elastic.operators.rows import as_table, is_frame
from elastic.operators.schemas import to_schema
from elastic.operators.stages import Stage, to_key_columns
from elastic.operators.testing import Crash, InputBatch, OperatorTester, Rekey, Scale
from elastic.spark.processors.initial import add_empty_initial, to_initial_rows
from elastic.spark.processors.operator import ProcessorOperator


class ProcessorTester:
    """An `OperatorTester` for a `StatefulProcessor`.

        tester = ProcessorTester(Counts(), "id string, n long", key="id", schema="id string, price double")
        rows = tester.run([[{"id": "a", "price": 1.5}], Scale(3), [{"id": "a", "price": 2.0}], Crash("node-1")])

    `output_schema` to `rows_per_frame` are as for `ProcessorOperator`; `initial_state` holds rows with the key columns.
    `watermark` is the delay in milliseconds of the watermark behind the newest event time. Keys may move: the stage is
    grouped by table.
    """

    def __init__(
        self,
        processor: StatefulProcessor,
        output_schema: StructType | str,
        *,
        key: str | Sequence[str],
        schema: Any,
        initial_state: Any = None,
        initial_schema: Any = None,
        watermark: int = 0,
        tasks: int = 16,
        nodes: int = 2,
        on_error: Any = "fail",
        snapshot_every: int = 2,
        **options: Any,
    ) -> None:
        operator = ProcessorOperator(processor, output_schema, **options)
        self._name = operator.name
        self._key = to_key_columns(key)
        self._schema = to_schema(schema)
        self._initial: pa.Table | None = None
        if initial_state is not None:
            self._initial = _to_table(initial_state, None if initial_schema is None else to_schema(initial_schema))
        full = self._schema
        if self._initial is not None:
            full = add_empty_initial(self._schema.empty_table(), self._initial.schema).schema
        event_time = options.get("event_time")
        self._tester = OperatorTester(
            Stage(operator, self._key, grouping="table"),
            key=self._key,
            schema=full,
            tasks=tasks,
            nodes=nodes,
            watermark=None if event_time is None else (event_time, watermark),
            on_error=on_error,
            snapshot_every=snapshot_every,
        )
        self._is_first = True

    def run(self, scenario: Iterable[Any]) -> list[dict[str, Any]]:
        """Run a scenario; return the rows that the processor emits. The first batch has the initial state before it."""
        return self._tester.run([self._prepare(item) for item in scenario])

    def state(self, key: Any, name: str) -> Any:
        """Return what a variable of a key holds, in the form of rows; None if nothing."""
        described = self._tester.state(key)
        return None if described is None else described.get(name)

    def write_state(self, key: Any, name: str, value: Any) -> None:
        """Let a variable of a key hold a value, as if the processor had written it; None clears it.

        A value state takes a tuple, a list state a list of tuples, a map state a dict of tuples by tuples. Timers, also
        those of times to live, are not set.
        """
        self._tester.run([])  # starts it
        self._tester.change_state(key, lambda operator, entry: operator.write_state(entry, name, value) or None)

    @property
    def tester(self) -> OperatorTester:
        """The tester of the engine, with results, quarantined rows and assignments."""
        return self._tester

    def close(self) -> None:
        self._tester.close()

    def _prepare(self, item: Any) -> Any:
        if isinstance(item, Scale | Crash | Rekey):
            return item
        batch = item if isinstance(item, InputBatch) else InputBatch(item)
        rows = _to_table(batch.rows, self._schema)
        if self._initial is not None:
            initial = to_initial_rows(self._initial, self._key, self._schema)
            rows = add_empty_initial(rows, self._initial.schema)
            if self._is_first:
                rows = pa.concat_tables([rows, initial])
        self._is_first = False
        return replace(batch, rows=rows)


def _to_table(rows: Any, schema: pa.Schema | None) -> pa.Table:
    if not isinstance(rows, pa.Table | pa.RecordBatch) and not is_frame(rows):
        rows = list(rows)
    if schema is not None:
        return as_table(rows, schema)
    if is_frame(rows):
        return pa.Table.from_pandas(rows, preserve_index=False)
    return rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
