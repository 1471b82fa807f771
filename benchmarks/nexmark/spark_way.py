"""The queries in Spark's DataFrame API, each as its documentation would write it.

Where a result may have ties, Spark keeps one row and this engine all of them; `answers` compares accordingly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

from examples.nexmark.events import AUCTION_MS, DISORDER_MS, FIRST_CATEGORY
from examples.nexmark.queries import EURO_PER_DOLLAR, LOCAL_STATES

Inputs = Mapping[str, DataFrame]  # with watermarks


@dataclass(frozen=True)
class SparkQuery:
    """A query over the inputs, and its output mode."""

    make: Callable[[Inputs], DataFrame]
    mode: Literal["append", "update"] = "append"


def convert(inputs: Inputs) -> DataFrame:
    return inputs["bids"].select("person", "auction", "ts", (F.col("price") * EURO_PER_DOLLAR).alias("price"))


def join_sellers(inputs: Inputs) -> DataFrame:
    """Join without a bound of time: a person may sell at any time, so Spark keeps all rows."""
    persons = inputs["persons"].where(F.col("state").isin(*LOCAL_STATES)).select("person", "state")
    auctions = inputs["auctions"].where(F.col("category") == FIRST_CATEGORY).select("person", "auction")
    return auctions.join(persons, "person")


def average_by_category(inputs: Inputs) -> DataFrame:
    """Add up by windows of ten seconds: Spark chains aggregates only if all of them are over event time."""
    auctions = inputs["auctions"].select("auction", "category", "expires", F.col("ts").alias("opened"))
    bids = inputs["bids"].select(F.col("auction").alias("of"), "price", "ts")
    in_time = (F.col("ts") >= F.col("opened")) & (F.col("ts") <= F.col("expires"))
    bound = F.col("ts") <= F.col("opened") + F.expr(f"INTERVAL {AUCTION_MS} MILLISECONDS")
    pairs = auctions.join(bids, (F.col("auction") == F.col("of")) & in_time & bound)
    closed = pairs.groupBy("auction", "category", "opened").agg(F.max("price").alias("price"))
    by_window = closed.groupBy(F.window("opened", "10 seconds"), "category")
    return by_window.agg(F.sum("price").alias("total"), F.count("*").alias("auctions"))


def find_most_bids(inputs: Inputs) -> DataFrame:
    counts = (
        inputs["bids"].groupBy(F.window("ts", "10 seconds", "2 seconds"), "auction").agg(F.count("*").alias("bids"))
    )
    return counts.groupBy("window").agg(F.max(F.struct("bids", "auction")).alias("first"))


def find_highest_bid(inputs: Inputs) -> DataFrame:
    return inputs["bids"].groupBy(F.window("ts", "10 seconds")).agg(F.max(F.struct("price", "auction")).alias("first"))


def join_new_sellers(inputs: Inputs) -> DataFrame:
    persons = inputs["persons"].select("person", F.window("ts", "10 seconds").alias("window"))
    auctions = inputs["auctions"].select(
        F.col("person").alias("seller"), "auction", F.window("ts", "10 seconds").alias("of")
    )
    return persons.join(auctions, (F.col("person") == F.col("seller")) & (F.col("window") == F.col("of")))


def count_in_sessions(inputs: Inputs) -> DataFrame:
    return inputs["bids"].groupBy(F.session_window("ts", "10 seconds"), "person").agg(F.count("*").alias("bids"))


def count_in_processing_time(inputs: Inputs) -> DataFrame:
    timed = inputs["bids"].select("person", F.current_timestamp().alias("at"))
    return timed.groupBy(F.window("at", "10 seconds"), "person").agg(F.count("*").alias("bids"))


def find_last_bid(inputs: Inputs) -> DataFrame:
    last = F.max(F.struct("ts", "price")).alias("last")
    return inputs["bids"].groupBy("person", "auction").agg(last)


def find_highest_bids(inputs: Inputs) -> DataFrame:
    return inputs["bids"].groupBy("auction").agg(F.max_by("price", "price", 10).alias("prices"))


def join_bids(inputs: Inputs) -> DataFrame:
    """Join with a bound of time, which this engine does not need: without it Spark would keep all bids."""
    auctions = inputs["auctions"].where(F.col("category") == FIRST_CATEGORY)
    auctions = auctions.select(
        F.col("auction").alias("of"), F.col("person").alias("seller"), F.col("ts").alias("opened")
    )
    bids = inputs["bids"].select("auction", F.col("person").alias("bidder"), "price", "ts")
    begin = F.col("opened") - F.expr(f"INTERVAL {DISORDER_MS} MILLISECONDS")
    end = F.col("opened") + F.expr(f"INTERVAL {AUCTION_MS} MILLISECONDS")
    return bids.join(auctions, (F.col("auction") == F.col("of")) & (F.col("ts") >= begin) & (F.col("ts") <= end))


SPARK_QUERIES: dict[int, SparkQuery] = {
    0: SparkQuery(lambda inputs: inputs["bids"]),
    1: SparkQuery(convert),
    2: SparkQuery(lambda inputs: inputs["bids"].where(F.col("auction") % 123 == 0).select("auction", "price")),
    3: SparkQuery(join_sellers),
    4: SparkQuery(average_by_category),
    5: SparkQuery(find_most_bids),
    7: SparkQuery(find_highest_bid),
    8: SparkQuery(join_new_sellers),
    11: SparkQuery(count_in_sessions),
    12: SparkQuery(count_in_processing_time, "update"),
    18: SparkQuery(find_last_bid, "update"),
    19: SparkQuery(find_highest_bids, "update"),
    20: SparkQuery(join_bids),
}
# Why Spark has no streaming query that gives the same answer.
MISSING: dict[int, str] = {
    6: "windows of rows, such as the last ten of a seller, are not supported on streams",
}
