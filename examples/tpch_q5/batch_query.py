"""The same query over tables at rest, with joins of Arrow."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from examples.tpch_q5.stream import CUSTOMERS, LINES, ORDERS, SUPPLIERS
from examples.tpch_q5.tables import nations_of

Revenues = dict[str, tuple[int, int]]  # revenue and lines by nation
_MICROSECONDS = 1_000


def join_purchases(rows: Mapping[str, pa.Table], region: str) -> pa.Table:
    """Return a row for each line that counts: the nation, when it was ordered, and the revenue."""
    customers = rows[CUSTOMERS].rename_columns(["custkey", "customer_nation"])
    orders = rows[ORDERS].join(customers, "custkey", join_type="inner")
    lines = rows[LINES].join(orders, "orderkey", join_type="inner").join(rows[SUPPLIERS], "suppkey", join_type="inner")
    is_domestic = pc.and_(
        pc.equal(lines["nation"], lines["customer_nation"]), pc.is_in(lines["nation"], pa.array(nations_of(region)))
    )
    return lines.filter(is_domestic).select(["nation", "ordered", "revenue"])


def sum_window(purchases: pa.Table, begin_ms: int, end_ms: int) -> Revenues:
    """Return the result of query 5 for orders of a window."""
    ordered = purchases["ordered"].cast(pa.int64())
    is_inside = pc.and_(pc.greater_equal(ordered, begin_ms * _MICROSECONDS), pc.less(ordered, end_ms * _MICROSECONDS))
    sums = purchases.filter(is_inside).group_by("nation").aggregate([("revenue", "sum"), ("revenue", "count")])
    columns = [sums[name].to_pylist() for name in ("nation", "revenue_sum", "revenue_count")]
    return {nation: (revenue, lines) for nation, revenue, lines in zip(*columns, strict=True)}
