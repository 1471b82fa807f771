"""Operators in three versions, of each kind of state: what one stores the next one upgrades."""

from typing import Any, ClassVar

import pyarrow as pa

from elastic.operators import Context, KeyedColumns, KeyedOperator, Operator, State, ValueState


class Spending1(KeyedOperator):
    """The state of a key is a number."""

    name = "spending"
    output_schema = "customer string, total long"

    def initial_state(self) -> Any:
        return 0

    def handle_key(self, key: Any, rows: Any, state: ValueState, _: Context) -> list[dict[str, Any]]:
        state.update(state.get() + sum(row["amount"] for row in rows))
        return [{"customer": key, "total": state.get()}]


class Spending2(Spending1):
    """The state of a key is a dict, which says which versions it was upgraded from."""

    version: ClassVar[str] = "2"

    def initial_state(self) -> Any:
        return {"total": 0, "from": []}

    def upgrade(self, old_version: str, value: Any) -> Any:
        return {"total": value, "from": [old_version]}

    def handle_key(self, key: Any, rows: Any, state: ValueState, _: Context) -> list[dict[str, Any]]:
        value = state.get()
        state.update({**value, "total": value["total"] + sum(row["amount"] for row in rows)})
        return [{"customer": key, "total": state.get()["total"]}]


class Spending3(Spending2):
    """The same once more, from either version."""

    version: ClassVar[str] = "3"

    def upgrade(self, old_version: str, value: Any) -> Any:
        if old_version == "1":
            value = super().upgrade(old_version, value)
        return value if old_version == "1" else {**value, "from": [*value["from"], old_version]}


class FailingSpending(Spending2):
    """Cannot upgrade one key."""

    def upgrade(self, old_version: str, value: Any) -> Any:
        if value > 0:
            raise ValueError("too much")
        return super().upgrade(old_version, value)


class Columns1(Operator):
    """The state is `KeyedColumns` with one column."""

    name = "spending"
    output_schema = "customer string, total long"
    columns: ClassVar[dict[str, str]] = {"total": "int64"}

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("customer string", self.columns)

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> pa.Table:
        held: KeyedColumns = state.value
        numbers = held.rows_for(rows)
        held.count("total", numbers, rows["amount"].to_numpy())
        return held.to_table(numbers).select(["customer", "total"])

    def lookup(self, value: KeyedColumns, key: tuple[Any, ...]) -> Any:
        found = value.get(key)
        return None if found is None else found["total"]


class Columns2(Columns1):
    """A column more: the number of upgrades."""

    version: ClassVar[str] = "2"
    columns: ClassVar[dict[str, str]] = {"total": "int64", "upgrades": "int8"}

    def upgrade(self, old_version: str, value: KeyedColumns) -> KeyedColumns:
        assert old_version == "1"
        upgraded = self.initial_state()
        numbers = upgraded.rows_for(value.to_table())
        upgraded.column("total")[numbers] = value.column("total")
        upgraded.column("upgrades")[numbers] = 1
        return upgraded
