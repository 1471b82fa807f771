"""The queries, each with the key that its rows are sent by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastic.operators import (
    Aggregate,
    Context,
    Enrich,
    IntervalJoin,
    Operator,
    Side,
    Stage,
    StatelessOperator,
    TopK,
    WindowJoin,
    session_window,
    stateless,
    window,
)
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from elastic.operators.graph import Input
from examples.nexmark.events import AUCTION_MS, COLUMNS, DISORDER_MS, FIRST_CATEGORY, SCHEMA

EURO_PER_DOLLAR = 0.908
LOCAL_STATES = ("OR", "ID", "CA")
WINDOW = pa.struct([("start", SCHEMA.field("ts").type), ("end", SCHEMA.field("ts").type)])


@dataclass(frozen=True)
class Query:
    """A question, the inputs that it is about, the key of their rows, and the operators that answer it.

    `columns` and `keep` say what of the inputs matters: which columns, and of an input the rows with some values in a
    column. The rest is left out of a stream before it is sent.
    """

    question: str
    inputs: tuple[str, ...]
    key: str
    pipeline: Sequence[Operator | Stage]
    columns: tuple[str, ...]
    keep: Mapping[str, tuple[str, tuple[Any, ...]]] = field(default_factory=dict)

    def columns_of(self, name: str) -> list[str]:
        """Return the columns of an input that matter."""
        return [column for column in self.columns if column in COLUMNS[name]]

    def declare(self, rows: Mapping[str, Any] | None = None) -> list[Input]:
        """Return the inputs of a job that answers the query, each with its own watermark, with rows or without."""
        return [
            Input(
                None if rows is None else rows[name],
                name=name,
                event_time="ts",
                watermark_delay=f"{DISORDER_MS} ms",
                schema=pa.schema([SCHEMA.field(column) for column in self.columns_of(name)]),
            )
            for name in self.inputs
        ]

    def select(self, events: pa.Table) -> dict[str, pa.Table]:
        """Return the events that matter, by input."""
        found = {}
        for name in self.inputs:
            rows = events.filter(pc.equal(events["input"], name))
            if name in self.keep:
                column, values = self.keep[name]
                rows = rows.filter(pc.is_in(rows[column], value_set=pa.array(values)))
            found[name] = rows.select(self.columns_of(name))
        return found


def select_bids(rows: pa.Table) -> pa.Table:
    return rows.select(["person", "auction", "price", "ts"])


def to_euro(rows: pa.Table) -> pa.Table:
    euro = pc.multiply(rows["price"], EURO_PER_DOLLAR)
    return rows.select(["person", "auction", "ts"]).append_column("price", euro)


def select_auctions(rows: pa.Table) -> pa.Table:
    is_wanted = pa.array(rows["auction"].to_numpy() % 123 == 0)
    return rows.select(["auction", "price"]).filter(is_wanted)


class Greatest(StatelessOperator):
    """Keeps the rows of each window with the greatest value.

    A window is complete in all tasks at once, so all its rows come in the same batch, and no state is needed. Nodes
    send only the greatest rows that they have.
    """

    def __init__(self, column: str) -> None:
        self._column = column
        self.output_schema = pa.schema([("auction", pa.int64()), ("window", WINDOW), (column, pa.int64())])

    def combine(self, rows: pa.Table) -> pa.Table:
        ends = pc.struct_field(rows["window"].combine_chunks(), "end").cast(pa.int64()).to_numpy()
        values = rows[self._column].to_numpy()
        windows, window_of = np.unique(ends, return_inverse=True)
        greatest = np.zeros(len(windows), np.int64)  # counts and prices are positive
        np.maximum.at(greatest, window_of, values)
        return rows.filter(pa.array(values == greatest[window_of]))

    def handle_rows(self, rows: pa.Table, _context: Context) -> pa.Table:
        return self.combine(rows)


def average_by_seller(rows: pa.Table) -> pa.Table:
    averages = rows.group_by("seller").aggregate([("price", "mean"), ("price", "count")])
    return averages.rename_columns({"price_mean": "price", "price_count": "auctions"})


def is_in_time(pairs: pa.Table) -> pa.ChunkedArray:
    return pc.less_equal(pairs["bid_at"], pairs["expires"])


BIDS = Side("bids", columns={"bidder": "person", "price": "price", "bid_at": "ts"})
AUCTIONS = Side("auctions", columns={"seller": "person", "category": "category"})

# The highest bid on each auction while it is open, once it has closed. The pairs of an auction have its `expires`, so
# they are all in one window over it, which is complete when no more bids can come in time.
# `expires` is not before the bid of a pair, so it does not lie behind the watermark of the join.
WINNING_BIDS: list[Operator | Stage] = [
    Stage(
        IntervalJoin(
            Side("auctions", time="ts", columns={"seller": "person", "category": "category", "expires": "expires"}),
            Side("bids", time="ts", columns={"price": "price", "bid_at": "ts"}),
            upper=f"{AUCTION_MS} ms",
            where=is_in_time,
        ),
        output_delay="0 seconds",
    ),
    Stage(
        Aggregate(price=F.max("price")).over(window("1 second"), time="expires"),
        key=("auction", "seller", "category", "expires"),
    ),
]

QUERIES: dict[int, Query] = {
    0: Query(
        "all bids",
        ("bids",),
        "auction",
        [stateless(select_bids, "person long, auction long, price long, ts timestamp")],
        columns=("ts", "person", "auction", "price"),
    ),
    1: Query(
        "bids in euro",
        ("bids",),
        "auction",
        [stateless(to_euro, "person long, auction long, ts timestamp, price double")],
        columns=("ts", "person", "auction", "price"),
    ),
    2: Query(
        "bids on some auctions",
        ("bids",),
        "auction",
        [stateless(select_auctions, "auction long, price long")],
        columns=("ts", "auction", "price"),
    ),
    3: Query(
        "who sells in a category and in some states",
        ("persons", "auctions"),
        "person",
        [Enrich(Side("auctions", columns=["auction"]), table=Side("persons", columns=["state"]), how="inner")],
        columns=("ts", "person", "auction", "state"),
        keep={"persons": ("state", LOCAL_STATES), "auctions": ("category", (FIRST_CATEGORY,))},
    ),
    4: Query(
        "the average closing price of a category",
        ("auctions", "bids"),
        "auction",
        [*WINNING_BIDS, Stage(Aggregate(price=F.mean("price"), auctions=F.count()), key="category")],
        columns=("ts", "person", "auction", "category", "expires", "price"),
    ),
    5: Query(
        "the auctions with the most bids in the last 10 seconds, every 2 seconds",
        ("bids",),
        "auction",
        [
            Aggregate(bids=F.count()).over(window("10 seconds", "2 seconds"), time="ts"),
            Stage(Greatest("bids"), key="window"),
        ],
        columns=("ts", "auction"),
    ),
    6: Query(
        "the average closing price of the last ten auctions of a seller",
        ("auctions", "bids"),
        "auction",
        [
            *WINNING_BIDS,
            Stage(TopK(10, by="expires"), key="seller"),
            Stage(stateless(average_by_seller, "seller long, price double, auctions long"), key="seller"),
        ],
        columns=("ts", "person", "auction", "category", "expires", "price"),
    ),
    7: Query(
        "the highest bid of every 10 seconds",
        ("bids",),
        "auction",
        [
            Aggregate(price=F.max("price")).over(window("10 seconds"), time="ts"),
            Stage(Greatest("price"), key="window"),
        ],
        columns=("ts", "auction", "price"),
    ),
    8: Query(
        "new persons who sell within the same 10 seconds",
        ("persons", "auctions"),
        "person",
        [
            WindowJoin(
                Side("persons", time="ts", columns=["state"]),
                Side("auctions", time="ts", columns=["auction"]),
                window("10 seconds"),
            )
        ],
        columns=("ts", "person", "auction", "state"),
    ),
    11: Query(
        "bids of a person in a session, which ends after 10 quiet seconds",
        ("bids",),
        "person",
        [Aggregate(bids=F.count()).over(session_window("10 seconds"), time="ts")],
        columns=("ts", "person"),
    ),
    12: Query(
        "bids of a person every 10 seconds of processing time",
        ("bids",),
        "person",
        [Aggregate(bids=F.count()).over(window("10 seconds"))],
        columns=("ts", "person"),
    ),
    18: Query(
        "the last bid of a person on an auction",
        ("bids",),
        "auction",
        [Stage(TopK(1, by="ts"), ("person", "auction"))],
        columns=("ts", "person", "auction", "price"),
    ),
    19: Query(
        "the ten highest bids on an auction",
        ("bids",),
        "auction",
        [TopK(10, by="price")],
        columns=("ts", "auction", "price"),
    ),
    20: Query(
        "bids with their auctions, in a category",
        ("auctions", "bids"),
        "auction",
        [Enrich(BIDS, table=AUCTIONS, how="inner")],
        columns=("ts", "person", "auction", "category", "price"),
        keep={"auctions": ("category", (FIRST_CATEGORY,))},
    ),
}
