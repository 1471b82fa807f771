"""The queries, each with the key that its rows are sent by."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from elastic.operators import (
    Aggregate,
    Enrich,
    Operator,
    Side,
    Stage,
    TopK,
    WindowJoin,
    session_window,
    stateless,
    window,
)
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from examples.nexmark.events import FIRST_CATEGORY, SCHEMA

EURO_PER_DOLLAR = 0.908
WINDOW = pa.struct([("start", SCHEMA.field("ts").type), ("end", SCHEMA.field("ts").type)])


@dataclass(frozen=True)
class Query:
    """A question, the inputs that it is about, the key of their rows, and the operators that answer it."""

    question: str
    inputs: tuple[str, ...]
    key: str
    pipeline: Sequence[Operator | Stage]

    def select(self, events: pa.Table) -> pa.Table:
        """Return the events of its inputs."""
        return events.filter(pc.is_in(events["input"], value_set=pa.array(self.inputs)))


def to_euro(rows: pa.Table) -> pa.Table:
    euro = pc.multiply(rows["price"], EURO_PER_DOLLAR)
    return rows.select(["person", "auction", "ts"]).append_column("price", euro)


def select_auctions(rows: pa.Table) -> pa.Table:
    is_wanted = pa.array(rows["auction"].to_numpy() % 123 == 0)
    return rows.select(["auction", "price"]).filter(is_wanted)


def is_local(rows: pa.Table) -> pa.Table:
    local = pc.is_in(rows["state"], value_set=pa.array(["OR", "ID", "CA"]))
    return rows.filter(pc.and_(local, pc.equal(rows["category"], FIRST_CATEGORY)))


def is_first_category(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.equal(rows["category"], FIRST_CATEGORY))


def keep_greatest(column: str) -> Operator:
    """Return an operator that keeps the rows of each window with the greatest value.

    A window is complete in all tasks at once, so all its rows come in the same batch, and no state is needed.
    """

    def greatest(rows: pa.Table) -> pa.Table:
        ends = pc.struct_field(rows["window"].combine_chunks(), "end")
        rows = rows.append_column("end", ends)
        most = rows.group_by("end").aggregate([(column, "max")])
        joined = rows["end"].to_numpy(), rows[column].to_numpy()
        limits = dict(zip(most["end"].to_numpy().tolist(), most[f"{column}_max"].to_pylist(), strict=True))
        is_most = [value == limits[end] for end, value in zip(joined[0].tolist(), joined[1].tolist(), strict=True)]
        return rows.filter(pa.array(is_most, pa.bool_())).drop_columns("end")

    return stateless(greatest, pa.schema([("auction", pa.int64()), ("window", WINDOW), (column, pa.int64())]))


BIDS = Side("bids", time="ts", columns={"bidder": "person", "price": "price", "bid_at": "ts"})
AUCTIONS = Side("auctions", time="ts", columns={"seller": "person", "category": "category"})

QUERIES: dict[int, Query] = {
    0: Query("all bids", ("bids",), "auction", [stateless(lambda rows: rows, SCHEMA)]),
    1: Query(
        "bids in euro",
        ("bids",),
        "auction",
        [stateless(to_euro, "person long, auction long, ts timestamp, price double")],
    ),
    2: Query("bids on some auctions", ("bids",), "auction", [stateless(select_auctions, "auction long, price long")]),
    3: Query(
        "who sells in a category and in some states",
        ("persons", "auctions"),
        "person",
        [
            Enrich(
                Side("auctions", columns=["auction", "category"]), table=Side("persons", columns=["state"]), how="inner"
            ),
            stateless(is_local, "person long, auction long, category long, state string"),
        ],
    ),
    5: Query(
        "the auctions with the most bids in the last 10 seconds, every 2 seconds",
        ("bids",),
        "auction",
        [
            Aggregate(bids=F.count()).over(window("10 seconds", "2 seconds"), time="ts"),
            Stage(keep_greatest("bids"), key="window"),
        ],
    ),
    7: Query(
        "the highest bid of every 10 seconds",
        ("bids",),
        "auction",
        [
            Aggregate(price=F.max("price")).over(window("10 seconds"), time="ts"),
            Stage(keep_greatest("price"), key="window"),
        ],
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
    ),
    11: Query(
        "bids of a person in a session, which ends after 10 quiet seconds",
        ("bids",),
        "person",
        [Aggregate(bids=F.count()).over(session_window("10 seconds"), time="ts")],
    ),
    12: Query(
        "bids of a person every 10 seconds of processing time",
        ("bids",),
        "person",
        [Aggregate(bids=F.count()).over(window("10 seconds"))],
    ),
    18: Query(
        "the last bid of a person on an auction", ("bids",), "auction", [Stage(TopK(1, by="ts"), ("person", "auction"))]
    ),
    19: Query("the ten highest bids on an auction", ("bids",), "auction", [TopK(10, by="price")]),
    20: Query(
        "bids with their auctions, in a category",
        ("auctions", "bids"),
        "auction",
        [
            Enrich(BIDS, table=AUCTIONS, how="inner"),
            stateless(
                is_first_category, "auction long, bidder long, price long, bid_at timestamp, seller long, category long"
            ),
        ],
    ),
}
