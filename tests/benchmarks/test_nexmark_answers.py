"""The comparison of answers sees what differs, and only that."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.nexmark.__main__ import Line, format_lines
from benchmarks.nexmark.answers import compare, compare_runs
from benchmarks.nexmark.event_files import END_MS, write_events

US = pa.timestamp("us", "UTC")
WINDOW = pa.struct([("start", US), ("end", US)])


def windows(*starts_ms: int) -> pa.Array:
    return pa.array([{"start": ms * 1_000, "end": (ms + 10_000) * 1_000} for ms in starts_ms], WINDOW)


def counts(*rows: tuple[int, int, int]) -> pa.Table:
    starts, auctions, bids = zip(*rows, strict=True)
    return pa.table({"window": windows(*starts), "auction": pa.array(auctions), "bids": pa.array(bids)})


def of_spark(*rows: tuple[int, int, int]) -> pa.Table:
    starts, auctions, bids = zip(*rows, strict=True)
    first = [{"bids": count, "auction": auction} for auction, count in zip(auctions, bids, strict=True)]
    return pa.table({"window": windows(*starts), "first": pa.array(first)})


def test_of_rows_that_tie_the_greatest_auction_is_compared_whatever_the_order() -> None:
    ours = counts((2_000, 4, 7), (0, 1, 3), (0, 9, 3))
    assert compare(5, ours, of_spark((0, 9, 3), (2_000, 4, 7))) == "equal"
    assert compare(5, ours, of_spark((0, 1, 3), (2_000, 4, 7))) == "different"
    assert compare(5, ours, of_spark((0, 9, 3), (2_000, 4, 8))) == "different"
    assert compare(5, ours, of_spark((0, 9, 3))) == "different"
    assert compare(5, ours, None) == "-"


def test_a_row_that_is_there_twice_is_a_difference() -> None:
    once = pa.table({"auction": [1, 2], "price": [5, 6]})
    twice = pa.concat_tables([once, once.slice(1)])
    assert compare(2, once, once.take([1, 0])) == "equal"
    assert compare(2, twice, once) == "different"
    assert compare_runs(2, twice, once) == "different"


def test_rows_of_the_last_files_do_not_count() -> None:
    events = pa.table({"auction": [1], "price": [5]})
    flushed = pa.concat_tables([events, pa.table({"auction": [-1], "price": [1]})])
    assert compare(2, flushed, events) == "equal"
    assert compare(5, counts((0, 1, 3), (END_MS, 1, 1)), of_spark((0, 1, 3))) == "equal"


def test_updates_count_by_the_last_one() -> None:
    updates = pa.table({"seller": [1, 1, 2], "price": [5.0, 7.0, 3.0], "auctions": [1, 2, 1], "_batch": [0, 3, 1]})
    last = pa.table({"seller": [2, 1], "price": [3.0, 7.0], "auctions": [1, 2], "_batch": [9, 9]})
    assert compare_runs(6, updates, last) == "equal"
    assert compare_runs(6, updates.slice(0, 1), last) == "different"


def test_files_have_the_rows_that_they_should_in_the_order_of_their_times(tmp_path: Path) -> None:
    files = write_events(tmp_path, ("auctions", "bids"), batches=2, rows=1_000, per_second=1_000)
    assert files.rows == 980  # whole cycles of fifty events
    paths = sorted((tmp_path / "bids").glob("*.parquet"))
    times = [path.stat().st_mtime for path in paths]
    assert times == sorted(set(times))
    rows = sum(
        pq.read_metadata(path).num_rows for name in files.inputs for path in (tmp_path / name).glob("0000[0-3]*")
    )
    assert rows == 2 * files.rows
    flush = pq.read_table(paths[-1]).to_pylist()
    assert [row["auction"] for row in flush] == [-1]


def test_the_table_shows_goals_and_leaves_out_what_spark_has_not() -> None:
    text = format_lines({5: Line(300.0, "equal", theirs=100.0, settings="RocksDB, 2"), 6: Line(1.0, "-")})
    assert "3.00" in text
    assert "equal" in text
    assert "-" in text.splitlines()[-1]
