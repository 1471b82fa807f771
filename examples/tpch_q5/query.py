"""Query 5 as a graph of ready-made operators: what customers of a nation bought from suppliers of the same nation.

select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
from customer, orders, lineitem, supplier, nation, region
where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey
  and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey
  and r_name = :region and o_orderdate in the window
group by n_name
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from elastic.operators import Aggregate, Context, Enrich, IntervalJoin, Side, Stage, State, window
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from examples.harness.cost import spend
from examples.tpch_q5.stream import CUSTOMERS, LINES, ORDERS, SUPPLIERS
from examples.tpch_q5.tables import nations_of

PLACED, SOLD, SUPPLIED = "placed", "sold", "supplied"
RESULT_SCHEMA = pa.schema(
    [
        ("nation", pa.string()),
        ("window", pa.struct([("start", pa.timestamp("us", tz="UTC")), ("end", pa.timestamp("us", tz="UTC"))])),
        ("revenue", pa.int64()),
        ("lines", pa.int64()),
    ]
)


class CostlyEnrich(Enrich):
    """`Enrich` with a cost of every row; drops all rows that a condition does not hold for."""

    def __init__(self, stream: Side, *, table: Side, cost_microseconds: float, nations: tuple[str, ...] = ()) -> None:
        super().__init__(stream, table=table, how="inner")
        self._cost_microseconds = cost_microseconds
        self._nations = pa.array(nations, pa.string())

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Iterator[Any]:
        spend(rows.num_rows, self._cost_microseconds)
        for enriched in super().handle_batch(rows, state, context):
            yield enriched if not len(self._nations) else enriched.filter(self._is_domestic(enriched))

    def _is_domestic(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return which rows have a customer and a supplier of the same nation, in the region."""
        nation = rows["nation"]
        return pc.and_(pc.equal(nation, rows["customer_nation"]), pc.is_in(nation, self._nations))


def build_stages(
    size_ms: int, slide_ms: int, most_delay_ms: int, *, region: str = "ASIA", cost_microseconds: float = 0.0
) -> list[Stage]:
    """Return the stages: orders with their customers, with their lines, with the suppliers of these; sums by nation.

    Customers and suppliers are what hot keys are of, so both stages are grouped by table and their keys can move.
    """
    placed = CostlyEnrich(
        Side(ORDERS, columns=["orderkey", "ordered"]),
        table=Side(CUSTOMERS, columns={"customer_nation": "nation"}),
        cost_microseconds=cost_microseconds,
    )
    sold = IntervalJoin(
        Side(PLACED, time="ordered", columns=["ordered", "customer_nation"]),
        Side(LINES, time="entered", columns=["suppkey", "revenue"]),
        upper=f"{most_delay_ms} ms",
    )
    supplied = CostlyEnrich(
        Side(SOLD, columns=["ordered", "customer_nation", "revenue"]),
        table=Side(SUPPLIERS, columns=["nation"]),
        cost_microseconds=cost_microseconds,
        nations=tuple(nations_of(region)),
    )
    sums = Aggregate(revenue=F.sum("revenue"), lines=F.count())
    return [
        Stage(placed, "custkey", PLACED, grouping="table", inputs=[ORDERS, CUSTOMERS]),
        Stage(sold, "orderkey", SOLD, inputs=[PLACED, LINES]),
        Stage(supplied, "suppkey", SUPPLIED, grouping="table", inputs=[SOLD, SUPPLIERS]),
        Stage(sums.over(window(f"{size_ms} ms", f"{slide_ms} ms"), time="ordered"), "nation", "revenue"),
    ]
