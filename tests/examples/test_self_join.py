"""Pairs of trades equal those of a batch join, whatever moves, crashes or scales meanwhile."""

from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.operators.testing import Crash, OperatorTester, Rekey, Scale
from examples.self_join.application import PairAuditor, TradeSelfJoin
from examples.self_join.batch_join import join_trades
from examples.self_join.sliding_join import PAIR_SCHEMA
from examples.workloads import TRADE_SCHEMA, KeyStream, Pace, Trades, make_symbols

TASKS = 8
WINDOW_MS = 40
DELAY_MS = 15
SYMBOLS = ("S1", "S2", "S3")

trade = st.fixed_dictionaries(
    {
        "symbol": st.sampled_from(SYMBOLS),
        "time_ms": st.integers(0, 20 + DELAY_MS),
        "player": st.integers(0, 1),
        "is_buy": st.booleans(),
        "cents": st.integers(995, 1_010),
    }
)
rekeys = st.dictionaries(st.sampled_from(SYMBOLS), st.none() | st.integers(0, TASKS - 1), max_size=3).map(Rekey)
disturbances = rekeys | st.builds(Scale, st.integers(1, 4)) | st.just("crash")


def to_table(trades: list[dict[str, Any]], first: int = 0) -> pa.Table:
    """Return trades as rows, numbered from `first` on."""
    rows = [{**one, "time": one["time_ms"] * 1_000, "trade": number} for number, one in enumerate(trades, start=first)]
    columns = [
        pa.array([row[field.name] for row in rows], pa.int64() if field.name == "time" else field.type)
        for field in TRADE_SCHEMA
    ]
    unnamed = zip(columns, TRADE_SCHEMA.types, strict=True)
    return pa.Table.from_arrays([column.cast(kind) for column, kind in unnamed], schema=TRADE_SCHEMA)


def make_trade(
    time_ms: int, *, is_buy: bool, symbol: str = "S1", player: int = 0, cents: int = 1_000
) -> dict[str, Any]:
    return {"symbol": symbol, "time_ms": time_ms, "player": player, "is_buy": is_buy, "cents": cents}


def make_tester(**options: Any) -> OperatorTester:
    application = TradeSelfJoin(Trades(KeyStream(make_symbols(3), 2, TASKS, 0.0, 0.0), Pace(1, 20, 1)), WINDOW_MS)
    options = {"tasks": TASKS, "watermark": ("time", DELAY_MS), **options}
    return OperatorTester(application.stages(), key="symbol", schema=TRADE_SCHEMA, **options)


def pairs_of(rows: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return sorted((row["symbol"], row["buy"], row["sell"]) for row in rows)


def join_naively(table: pa.Table) -> list[tuple[str, int, int]]:
    """Compare all purchases with all sales."""
    trades = table.set_column(1, "time", table["time"].cast(pa.int64())).to_pylist()
    return sorted(
        (buy["symbol"], buy["trade"], sell["trade"])
        for buy, sell in product(trades, trades)
        if buy["is_buy"]
        and not sell["is_buy"]
        and (buy["symbol"], buy["player"]) == (sell["symbol"], sell["player"])
        and abs(buy["time"] - sell["time"]) <= WINDOW_MS * 1_000
        and abs(buy["cents"] - sell["cents"]) * 100 <= min(buy["cents"], sell["cents"])
    )


@given(st.lists(trade, max_size=12))
def test_the_batch_join_finds_what_a_comparison_of_all_pairs_finds(trades: list[dict[str, Any]]) -> None:
    table = to_table([{**one, "time_ms": 3 * one["time_ms"]} for one in trades])
    assert pairs_of(join_trades(table, WINDOW_MS).to_pylist()) == join_naively(table)


@given(st.lists(st.tuples(st.lists(trade, max_size=8), disturbances), min_size=1, max_size=8))
def test_pairs_after_every_window_equal_those_of_a_batch_join(
    windows: list[tuple[list[dict[str, Any]], Any]],
) -> None:
    tester, history, found = make_tester(), TRADE_SCHEMA.empty_table(), []
    for number, (trades, disturbance) in enumerate(windows):
        # Times go back by less than the delay, so no trade is late.
        table = to_table([{**one, "time_ms": 21 * number + one["time_ms"]} for one in trades], history.num_rows)
        history = pa.concat_tables([history, table])
        found += tester.run([table])
        assert pairs_of(found) == join_naively(history)
        tester.run([Crash(tester.assignment.nodes[-1]) if disturbance == "crash" else disturbance])


def test_trades_are_dropped_when_no_partner_can_come_even_after_they_moved() -> None:
    tester = make_tester()
    tester.run([to_table([make_trade(0, is_buy=True), make_trade(30, is_buy=True)])])
    tester.run([Rekey({"S1": 5})])
    other = [make_trade(time_ms, is_buy=True, symbol="S2") for time_ms in (54, 55, 85)]
    tester.run([to_table(other[:1], 2)])
    assert tester.state("S1") == [0, 1]
    tester.run([to_table(other[1:2], 3)])  # the watermark is 40, a window after the first trade
    assert tester.state("S1") == [1]
    tester.run([Rekey({"S1": 2}), Crash("node-1"), Crash("node-2"), to_table(other[2:], 4)])
    assert tester.state("S1") == []
    sizes = [len(tester._running.state(unit).value.get("S1", ())) for unit in tester._running.routing.units(0)]
    assert sum(sizes) == 0


def test_a_late_trade_has_no_partners() -> None:
    tester = make_tester()
    tester.run([to_table([make_trade(50, is_buy=True)])])  # the watermark is 35
    assert tester.run([to_table([make_trade(35, is_buy=False)], 1)]) == []
    assert len(tester.run([to_table([make_trade(36, is_buy=False)], 2)])) == 1


def test_the_recent_trades_can_be_read() -> None:
    tester = make_tester(tasks=1, nodes=1)
    tester.run([to_table([make_trade(7, is_buy=True), make_trade(9, is_buy=False, symbol="S2", cents=20)])])
    operator, state = tester._runners[0].operator, tester._running.state(next(iter(tester._running.routing.units(0))))
    assert operator.state_rows(state.value).to_pylist() == [
        {"symbol": "S1", "time_ms": 7, "trade": 0, "player": 0, "cents": 1_000, "is_buy": True},
        {"symbol": "S2", "time_ms": 9, "trade": 1, "player": 0, "cents": 20, "is_buy": False},
    ]
    assert operator.state_size(state.value) == 2 * 40


@pytest.mark.parametrize("change", ["none", "lost", "twice", "wrong"])
def test_the_auditor_notices_pairs_that_are_lost_repeated_or_wrong(change: str) -> None:
    rows = to_table([make_trade(0, is_buy=True), make_trade(1, is_buy=False), make_trade(2, is_buy=False)])
    pairs = join_trades(rows, WINDOW_MS).sort_by("sell")
    emitted = {
        "none": pairs,
        "lost": pairs.slice(1),
        "twice": pa.concat_tables([pairs, pairs.slice(1)]),
        "wrong": pa.concat_tables([pairs, pa.Table.from_pylist([{"symbol": "S1", "buy": 1, "sell": 2}], PAIR_SCHEMA)]),
    }[change]
    check = PairAuditor(WINDOW_MS, DELAY_MS).check(0, rows, emitted)
    assert check.results == 2
    assert (check.difference is None) == (change == "none")


def test_pairs_with_trades_after_the_window_are_kept_for_their_check() -> None:
    auditor = PairAuditor(WINDOW_MS, DELAY_MS)
    first, second = to_table([make_trade(10, is_buy=True)]), to_table([make_trade(12, is_buy=False)], 1)
    ahead = join_trades(pa.concat_tables([first, second]), WINDOW_MS)
    assert auditor.check(0, first, ahead) == (0, None)
    assert auditor.check(1, second, PAIR_SCHEMA.empty_table()) == (1, None)
