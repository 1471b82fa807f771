"""TPC-H query 5 as a continuous query: its windows equal those of a batch query, whatever moves or scales."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import elastic
from elastic.core.events import RekeyRequested
from elastic.errors import InvalidSetting
from elastic.routing import hash_key
from elastic.routing.key_targets import KeyTargets
from examples.harness import RunSettings, run_windows
from examples.harness.application import WindowCheck, concat
from examples.harness.local_source import run_in_threads
from examples.harness.report import format_verdict
from examples.harness.results import Results
from examples.tpch_q5.__main__ import main
from examples.tpch_q5.application import RevenueByNation
from examples.tpch_q5.batch_query import join_purchases, sum_window
from examples.tpch_q5.query import PLACED, RESULT_SCHEMA, SUPPLIED
from examples.tpch_q5.stream import CUSTOMERS, LINES, ORDERS, SUPPLIERS, Purchases
from examples.tpch_q5.tables import NATIONS, REGIONS, Tables, nations_of
from examples.workloads import KeyStream, Pace

PACE = Pace(rows_per_batch=400, every_ms=20, batches_per_interval=5, intervals_per_phase=3)
NODES, TASKS = 2, 8
NODES_AFTER = {3: 4, 6: 1}  # intervals
CUSTOMER_COUNT, SUPPLIER_COUNT = 120, 60


def make_purchases(pace: Pace = PACE, skew: float = 0.8) -> Purchases:
    def draw(count: int, seed: int) -> KeyStream:
        return KeyStream(pa.array(np.arange(count)), NODES, TASKS, skew, 1.0, seed)

    tables = Tables.generate(CUSTOMER_COUNT, SUPPLIER_COUNT, orders=300)
    return Purchases(tables, draw(CUSTOMER_COUNT, 0), draw(SUPPLIER_COUNT, 1), pace)


def make_query(**options: Any) -> RevenueByNation:
    return RevenueByNation(make_purchases(), **options)


def run(application: RevenueByNation, settings: RunSettings, *, paced: bool = False) -> Any:
    results = Results(application)
    batches = settings.intervals * PACE.batches_per_interval
    with run_in_threads(application, results, batches=batches, paced=paced, nodes=NODES, tasks=TASKS) as stream:
        return run_windows(application, stream, results, settings)


def all_rows(purchases: Purchases, batches: int) -> dict[str, pa.Table]:
    rows = concat([purchases.batch(number) for number in range(batches)])
    assert isinstance(rows, dict)
    return rows


class KeyMover:
    """Moves some customers and suppliers to other tasks or home, whenever it is called, and scales now and then."""

    def __init__(self) -> None:
        self._chance = np.random.default_rng(0)
        self.calls = 0

    def __call__(self, job: elastic.Job) -> None:
        self.calls += 1
        if self.calls in NODES_AFTER:
            job.scale(NODES_AFTER[self.calls]).wait(30)
        targets = []
        for stage, count in ((PLACED, CUSTOMER_COUNT), (SUPPLIED, SUPPLIER_COUNT)):
            moved = self._chance.choice(count, 8, replace=False).tolist()
            tasks = [None if task == TASKS else int(task) for task in self._chance.integers(0, TASKS + 1, 8)]
            hashes = [hash_key(key, types=[pa.int64()]) for key in moved]
            number = job.pipeline.stage_number(stage)
            targets.append(KeyTargets.from_mapping(number, dict(zip(hashes, tasks, strict=True))))
        for one in targets:
            job._driver.post(RekeyRequested(f"move {self.calls} of stage {one.stage}", (one,), (1.0,)))


@pytest.mark.parametrize("paced", [False, True])
def test_all_windows_are_right_while_keys_move_and_the_job_scales(paced: bool) -> None:
    mover = KeyMover()
    summary = run(make_query(), RunSettings(10, mover), paced=paced)
    assert summary.is_right, format_verdict(summary)
    assert mover.calls == 10
    assert {window.nodes for window in summary.windows} == {2, 4, 1}
    assert summary.windows[-1].entries > 0
    assert sum(window.check.results for window in summary.windows) >= 20


def naive(rows: dict[str, pa.Table], region: str, begin_ms: int, end_ms: int) -> dict[str, tuple[int, int]]:
    """Follow every line to its order, customer and supplier."""
    nation_of_customer = dict(zip(*rows[CUSTOMERS].to_pydict().values(), strict=True))
    nation_of_supplier = dict(zip(*rows[SUPPLIERS].to_pydict().values(), strict=True))
    orders = {row["orderkey"]: row for row in rows[ORDERS].to_pylist()}
    sums: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for line in rows[LINES].to_pylist():
        order = orders[line["orderkey"]]
        nation, at_ms = nation_of_supplier[line["suppkey"]], order["ordered"].timestamp() * 1_000
        if (
            nation == nation_of_customer[order["custkey"]]
            and nation in nations_of(region)
            and begin_ms <= at_ms < end_ms
        ):
            revenue, lines = sums[nation]
            sums[nation] = (revenue + line["revenue"], lines + 1)
    return dict(sums)


@pytest.mark.parametrize("region", REGIONS)
def test_the_batch_query_is_what_a_walk_over_all_lines_finds(region: str) -> None:
    rows = all_rows(make_purchases(), 20)
    joined = join_purchases(rows, region)
    for begin_ms, end_ms in ((0, 400), (100, 240), (300, 301)):
        assert sum_window(joined, begin_ms, end_ms) == naive(rows, region, begin_ms, end_ms)
    assert sum_window(joined, 0, 400)


def test_every_line_comes_once_and_soon_after_its_order() -> None:
    purchases, batches = make_purchases(), 30
    rows = all_rows(purchases, batches + 1)
    ordered = dict(zip(*(rows[ORDERS][name].to_pylist() for name in ("orderkey", "ordered")), strict=True))
    counts: dict[int, int] = defaultdict(int)
    for line in rows[LINES].to_pylist():
        delay_ms = (line["entered"] - ordered[line["orderkey"]]).total_seconds() * 1_000
        assert 0 <= delay_ms <= purchases.most_delay_ms
        counts[line["orderkey"]] += 1
    starts, orders = purchases.tables.starts, purchases.tables.orders
    for key in range(purchases.orders_per_batch, batches * purchases.orders_per_batch):
        assert counts[key] == starts[key % orders + 1] - starts[key % orders]


def test_events_are_in_the_time_of_their_batch_and_tables_come_first() -> None:
    purchases = make_purchases()
    first = purchases.batch(0)
    assert [first[name].num_rows for name in (CUSTOMERS, SUPPLIERS, ORDERS, LINES)] == [
        CUSTOMER_COUNT,
        SUPPLIER_COUNT,
        0,
        0,
    ]
    for number in (1, 2, 7):
        batch = purchases.batch(number)
        assert not batch[CUSTOMERS].num_rows
        for name, column in ((ORDERS, "ordered"), (LINES, "entered")):
            times = batch[name][column].cast(pa.int64()).to_numpy() // 1_000
            assert (times // PACE.every_ms == number).all()
            assert batch[name].equals(make_purchases().batch(number)[name])


def test_hot_customers_and_suppliers_change_between_phases() -> None:
    purchases = make_purchases()

    def hottest(phase: int, name: str, column: str) -> int:
        batches = range(15 * phase + 1, 15 * phase + 15)
        keys = np.concatenate([purchases.batch(number)[name][column].to_numpy() for number in batches])
        assert np.bincount(keys).max() > 3 * len(keys) / len(np.bincount(keys))  # more than an even share
        return int(np.bincount(keys).argmax())

    for name, column in ((ORDERS, "custkey"), (LINES, "suppkey")):
        assert len({hottest(phase, name, column) for phase in range(6)}) > 1


def results_of(application: RevenueByNation, batches: int, ends: list[int]) -> pa.Table:
    """Return the right results of some windows."""
    joined = join_purchases(all_rows(application.purchases, batches), application.region)
    found: list[dict[str, Any]] = [
        {
            "nation": nation,
            "window": {"start": end - application.window_ms, "end": end},
            "revenue": sums[0],
            "lines": sums[1],
        }
        for end in ends
        for nation, sums in sum_window(joined, end - application.window_ms, end).items()
    ]
    for row in found:
        row["window"] = {name: ms * 1_000 for name, ms in row["window"].items()}
    return pa.Table.from_pylist(found, RESULT_SCHEMA)


def check(results: pa.Table, interval: int = 5) -> WindowCheck:
    """Return what the auditor says of results until the end of an interval, with the rows until then."""
    application = make_query()
    rows = all_rows(application.purchases, (interval + 1) * PACE.batches_per_interval)
    return application.make_auditor().check(interval, rows, results)


def test_wrong_results_are_noticed() -> None:
    right = results_of(make_query(), 30, [100, 200, 300, 400, 500])
    assert check(right) == (right.filter(pc.less(window_ends(right), 500)).num_rows, None)
    changed = right.set_column(2, "revenue", pa.array([1, *right["revenue"].to_pylist()[1:]]))
    assert "until 100 ms" in str(check(right.slice(1)).difference)
    assert "instead of" in str(check(changed).difference)
    assert "a second result" in str(check(pa.concat_tables([right, right.slice(2, 1)])).difference)
    assert "no result for the last" in str(check(right.slice(0, 0), interval=15).difference)


def test_a_result_of_a_window_that_was_checked_is_wrong() -> None:
    application = make_query()
    right = results_of(application, 30, [100, 200, 300])
    rows = all_rows(application.purchases, 20)
    auditor = application.make_auditor()
    assert auditor.check(3, rows, right).difference is None
    late = right.slice(0, 1).set_column(0, "nation", pa.array(["ATLANTIS"]))
    assert "a second result" in str(auditor.check(4, {name: rows[name].slice(0, 0) for name in rows}, late).difference)


def window_ends(results: pa.Table) -> pa.ChunkedArray:
    ends = pc.struct_field(results["window"], "end")
    return pc.divide(ends.cast(pa.int64()), 1_000)


def test_tables_of_a_generator_are_read_from_its_files(tmp_path: Path) -> None:
    decimal = pa.decimal128(15, 2)
    pq.write_table(pa.table({"c_custkey": [1, 2], "c_nationkey": [8, 24]}), tmp_path / "customer.parquet")
    pq.write_table(pa.table({"s_nationkey": [12]}), tmp_path / "supplier.parquet")
    with pytest.raises(InvalidSetting, match=r"lineitem\.parquet cannot be read"):
        Tables.read(tmp_path)
    lines = {
        "l_orderkey": [1, 1, 7],
        "l_extendedprice": pa.array([12.34, 100.0, 7.07]).cast(decimal),
        "l_discount": pa.array([0.04, 0.0, 0.1]).cast(decimal),
    }
    pq.write_table(pa.table(lines), tmp_path / "lineitem.parquet")
    tables = Tables.read(tmp_path)
    assert (tables.customers.tolist(), tables.suppliers.tolist()) == ([8, 24], [12])
    assert (tables.orders, tables.starts.tolist()) == (2, [0, 2, 3])
    assert (tables.cents.tolist(), tables.discounts.tolist()) == ([1_234, 10_000, 707], [4, 0, 10])


def test_nations_are_those_of_tpch() -> None:
    assert nations_of("ASIA") == ["INDIA", "INDONESIA", "JAPAN", "CHINA", "VIETNAM"]
    assert sorted(nation for region in REGIONS for nation in nations_of(region)) == sorted(NATIONS)
    assert {len(nations_of(region)) for region in REGIONS} == {5}
    with pytest.raises(InvalidSetting, match="expected one of AFRICA"):
        nations_of("ATLANTIS")


def test_the_command_runs_the_query_and_says_that_it_is_exact() -> None:
    arguments = ["--local", "--unpaced", "--nodes", "2", "--tasks", "8", "--seconds", "3", "--interval", "0.5"]
    ended = CliRunner().invoke(main, [*arguments, "--rate", "1000", "--every", "100", "--balance", "tasks"])
    assert ended.exit_code == 0, ended.output
    assert "equal those of a batch computation" in ended.output
