"""Every Nexmark query answers what plain Python computes from all events at once, while nodes join, leave and crash."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from elastic.operators.testing import Crash, InputBatch, OperatorTester, Scale
from examples.nexmark.events import START_MS, make_events
from examples.nexmark.queries import EURO_PER_DOLLAR, QUERIES

BATCHES, ROWS, PER_SECOND = 40, 250, 250
SIZE_MS = 10_000
END_MS = START_MS + 10**8
FAULTS: dict[int, list[Any]] = {10: [Scale(4)], 20: [Crash("node-1")], 30: [Scale(3)]}

Row = dict[str, Any]


def events() -> list[list[Row]]:
    return [make_events(batch * ROWS, ROWS, per_second=PER_SECOND).to_pylist() for batch in range(BATCHES)]


def ms(row: Row) -> int:
    milliseconds: int = round(row["ts"].timestamp() * 1_000)
    return milliseconds


def bounds(row: Row, name: str = "window") -> tuple[int, int]:
    start, end = (round(row[name][each].timestamp() * 1_000) for each in ("start", "end"))
    return start, end


def of(rows: list[Row], name: str) -> list[Row]:
    return [row for row in rows if row["input"] == name]


def run(number: int) -> list[Row]:
    """Return the results of a query; at the end the watermark passes everything."""
    query = QUERIES[number]
    tester = OperatorTester(query.pipeline, key=query.key, inputs=query.declare())
    items: list[Any] = []
    for batch in range(BATCHES):
        items.append(query.select(make_events(batch * ROWS, ROWS, per_second=PER_SECOND)))
        items += FAULTS.get(batch, [])
    # Windows of a second stage are complete a batch later than those of the first.
    items += [InputBatch({}, timestamp_ms=END_MS + at, next_watermark_ms=END_MS + at) for at in (0, 1, 2)]
    return tester.run(items)


def greatest_by_window(rows: list[Row], slide: int, value: Callable[[list[Row]], int]) -> set[tuple[int, int, int]]:
    groups: dict[int, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for start in range(ms(row) // slide * slide - SIZE_MS + slide, ms(row) + 1, slide):
            groups[start][row["auction"]].append(row)
    return {
        (start, auction, value(rows_of))
        for start, by_auction in groups.items()
        for auction, rows_of in by_auction.items()
        if value(rows_of) == max(map(value, by_auction.values()))
    }


def closing_prices(rows: list[Row]) -> list[tuple[Row, int]]:
    """Return the auctions with a bid in time, in the order in which they end, and the highest of these bids."""
    bids: dict[int, list[Row]] = defaultdict(list)
    for row in of(rows, "bids"):
        bids[row["auction"]].append(row)
    closed = []
    for auction in sorted(of(rows, "auctions"), key=lambda row: row["expires"]):
        in_time = [bid["price"] for bid in bids[auction["auction"]] if auction["ts"] <= bid["ts"] <= auction["expires"]]
        closed += [(auction, max(in_time))] if in_time else []
    return closed


def sessions(rows: list[Row]) -> set[tuple[int, int, int, int]]:
    found = set()
    times: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        times[row["person"]].append(ms(row))
    for person, all_times in times.items():
        all_times.sort()
        session = [all_times[0]]
        for time in [*all_times[1:], END_MS]:
            if time > session[-1] + SIZE_MS:
                found.add((person, session[0], session[-1] + SIZE_MS, len(session)))
                session = []
            session.append(time)
    return found


def counted(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


def test_bids_pass_are_converted_and_selected() -> None:
    bids = [row for batch in events() for row in of(batch, "bids")]
    columns = ("person", "auction", "price", "ts")
    assert counted(run(0)) == counted([{column: row[column] for column in columns} for row in bids])
    assert sorted(row["price"] for row in run(1)) == sorted(row["price"] * EURO_PER_DOLLAR for row in bids)
    wanted = [{"auction": row["auction"], "price": row["price"]} for row in bids if row["auction"] % 123 == 0]
    assert counted(run(2)) == counted(wanted)
    assert wanted


def test_rows_are_joined_with_the_newest_row_of_a_table() -> None:
    rows = [row for batch in events() for row in batch]
    states = {row["person"]: row["state"] for row in of(rows, "persons")}
    auctions = {row["auction"]: row for row in of(rows, "auctions")}
    local = {
        (row["person"], row["auction"], states[row["person"]])
        for row in auctions.values()
        if row["category"] == 10 and states[row["person"]] in ("OR", "ID", "CA")
    }
    assert {(row["person"], row["auction"], row["state"]) for row in run(3)} == local
    enriched = [
        (row["auction"], row["person"], row["price"], auctions[row["auction"]]["person"])
        for row in of(rows, "bids")
        if auctions[row["auction"]]["category"] == 10
    ]
    assert sorted((row["auction"], row["bidder"], row["price"], row["seller"]) for row in run(20)) == sorted(enriched)
    assert local
    assert enriched


def test_closing_prices_are_averaged_by_category_and_over_the_last_auctions_of_a_seller() -> None:
    closed = closing_prices([row for batch in events() for row in batch])
    by_category, by_seller = defaultdict(list), defaultdict(list)
    for auction, price in closed:
        by_category[auction["category"]].append(price)
        by_seller[auction["person"]].append(price)
    found = {row["category"]: (row["price"], row["auctions"]) for row in run(4)}
    assert found == {key: (sum(prices) / len(prices), len(prices)) for key, prices in by_category.items()}
    last = {seller: prices[-10:] for seller, prices in by_seller.items()}
    found = {row["seller"]: (row["price"], row["auctions"]) for row in run(6)}
    assert found == {seller: (sum(prices) / len(prices), len(prices)) for seller, prices in last.items()}
    assert any(len(prices) > 10 for prices in by_seller.values())
    assert len(closed) < len(of([row for batch in events() for row in batch], "auctions"))  # some had no bid in time


@pytest.mark.parametrize(("number", "slide", "column"), [(5, 2_000, "bids"), (7, 10_000, "price")])
def test_the_greatest_of_each_window(number: int, slide: int, column: str) -> None:
    bids = [row for batch in events() for row in of(batch, "bids")]
    value: Callable[[list[Row]], int] = len if column == "bids" else (lambda rows: max(row["price"] for row in rows))
    found = [(bounds(row)[0], row["auction"], row[column]) for row in run(number)]
    assert len(found) == len(set(found))
    assert set(found) == greatest_by_window(bids, slide, value)


def test_persons_and_their_auctions_in_the_same_window() -> None:
    rows = [row for batch in events() for row in batch]
    expected = {
        (person["person"], ms(person) // SIZE_MS * SIZE_MS, auction["auction"])
        for person in of(rows, "persons")
        for auction in of(rows, "auctions")
        if person["person"] == auction["person"] and ms(person) // SIZE_MS == ms(auction) // SIZE_MS
    }
    found = [(row["person"], bounds(row)[0], row["auction"]) for row in run(8)]
    assert sorted(found) == sorted(expected)
    assert expected


def test_sessions_and_windows_of_processing_time() -> None:
    bids = [row for batch in events() for row in of(batch, "bids")]
    found = [(row["person"], *bounds(row, "session_window"), row["bids"]) for row in run(11)]
    assert len(found) == len(set(found))
    assert set(found) == sessions(bids)
    counts: dict[Any, int] = defaultdict(int)
    for number, batch in enumerate(events()):  # a batch is a second long
        for row in of(batch, "bids"):
            counts[row["person"], number // 10 * SIZE_MS] += 1
    assert {(row["person"], bounds(row)[0]): row["bids"] for row in run(12)} == counts


def test_last_and_highest_bids() -> None:
    last: dict[Any, Row] = {}
    highest: dict[int, list[int]] = defaultdict(list)
    for row in (row for batch in events() for row in of(batch, "bids")):
        key = row["person"], row["auction"]
        last[key] = row if key not in last or row["ts"] > last[key]["ts"] else last[key]
        highest[row["auction"]].append(row["price"])
    found = {(row["person"], row["auction"]): row["price"] for row in run(18)}
    assert found == {key: row["price"] for key, row in last.items()}
    ranked: dict[int, dict[int, int]] = defaultdict(dict)
    for row in run(19):
        ranked[row["auction"]][row["rank"]] = row["price"]
    assert {auction: list(dict(sorted(ranks.items())).values()) for auction, ranks in ranked.items()} == {
        auction: sorted(prices, reverse=True)[:10] for auction, prices in highest.items()
    }
