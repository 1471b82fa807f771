"""Orders and their lines as streams in time; customers and suppliers as tables that come before them."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from examples.tpch_q5.tables import NATIONS, Numbers, Tables
from examples.workloads import KeyStream, Pace

CUSTOMERS, SUPPLIERS, ORDERS, LINES = "customers", "suppliers", "orders", "lines"
_TIME = pa.timestamp("us", tz="UTC")
CUSTOMER_SCHEMA = pa.schema([("custkey", pa.int64()), ("nation", pa.string())])
SUPPLIER_SCHEMA = pa.schema([("suppkey", pa.int64()), ("nation", pa.string())])
ORDER_SCHEMA = pa.schema([("orderkey", pa.int64()), ("custkey", pa.int64()), ("ordered", _TIME)])
LINE_SCHEMA = pa.schema(
    [("orderkey", pa.int64()), ("suppkey", pa.int64()), ("revenue", pa.int64()), ("entered", _TIME)]
)
SCHEMAS = {CUSTOMERS: CUSTOMER_SCHEMA, SUPPLIERS: SUPPLIER_SCHEMA, ORDERS: ORDER_SCHEMA, LINES: LINE_SCHEMA}
_MICROSECONDS = 1_000
_MEAN_ROWS = 5  # of an order: itself, and four lines in the mean
_NAMES = pa.array(NATIONS)


@dataclass(frozen=True, eq=False)
class Purchases:
    """The inputs of query 5, batch by batch: tables in batch 0, then orders, whose lines are entered soon after.

    An order arrives with its batch, in order of time, and a line at most one batch later. Customers and suppliers are
    drawn by a `KeyStream` each. `revenue` is the price less the discount, in hundredths of a cent.
    """

    tables: Tables
    customers: KeyStream
    suppliers: KeyStream
    pace: Pace

    @property
    def most_delay_ms(self) -> int:
        """Maximum delay of a line behind its order."""
        return self.pace.every_ms

    @property
    def orders_per_batch(self) -> int:
        return max(1, self.pace.rows_per_batch // _MEAN_ROWS)

    def batch(self, number: int) -> dict[str, pa.Table]:
        """Return the rows of each input."""
        if not number:
            empty = {name: schema.empty_table() for name, schema in SCHEMAS.items()}
            return {**empty, CUSTOMERS: self._table(CUSTOMERS), SUPPLIERS: self._table(SUPPLIERS)}
        lines = [self._lines(before, number) for before in (number - 1, number) if before]
        return {
            CUSTOMERS: CUSTOMER_SCHEMA.empty_table(),
            SUPPLIERS: SUPPLIER_SCHEMA.empty_table(),
            ORDERS: self._orders(number),
            LINES: pa.concat_tables(lines),
        }

    def _table(self, name: str) -> pa.Table:
        nations = self.tables.customers if name == CUSTOMERS else self.tables.suppliers
        return pa.Table.from_arrays(
            [pa.array(np.arange(len(nations))), _NAMES.take(pa.array(nations))], schema=SCHEMAS[name]
        )

    def _orders(self, number: int) -> pa.Table:
        keys = self._order_keys(number)
        customers = self.customers.draw(number, self.pace.phase_of(number), len(keys))
        return pa.Table.from_arrays(
            [pa.array(keys), pa.array(customers), _to_time(self._draw_order_times(number))], schema=ORDER_SCHEMA
        )

    def _order_keys(self, number: int) -> Numbers:
        return np.arange(number * self.orders_per_batch, (number + 1) * self.orders_per_batch)

    def _draw_order_times(self, number: int) -> Numbers:
        """Return the times of the orders of a batch, in microseconds."""
        us, count = self.pace.every_ms * _MICROSECONDS, self.orders_per_batch
        return np.asarray(number * us + np.arange(count) * us // count)

    def _lines(self, number: int, entered_in: int) -> pa.Table:
        """Return the lines of the orders of a batch that are entered in this batch or another one."""
        orders = self._order_keys(number)
        of_tables = orders % self.tables.orders
        starts, stops = self.tables.starts[of_tables], self.tables.starts[of_tables + 1]
        counts = stops - starts
        first = np.repeat(starts - np.append(0, np.cumsum(counts)[:-1]), counts)
        lines = first + np.arange(counts.sum())
        chance = np.random.default_rng([self.suppliers.seed, number, 3])
        us = self.pace.every_ms * _MICROSECONDS
        entered = np.repeat(self._draw_order_times(number), counts) + chance.integers(0, us, len(lines))
        suppliers = self.suppliers.draw(number, self.pace.phase_of(number), len(lines))
        revenue = self.tables.cents[lines] * (100 - self.tables.discounts[lines])
        is_entered = entered // us == entered_in
        columns = [np.repeat(orders, counts), suppliers, revenue]
        arrays = [pa.array(column[is_entered]) for column in columns]
        return pa.Table.from_arrays([*arrays, _to_time(entered[is_entered])], schema=LINE_SCHEMA)


def _to_time(microseconds: Numbers) -> pa.Array:
    return pa.array(microseconds).cast(_TIME)
