"""The heaviest keys of a job, made from what its nodes report."""

from dataclasses import replace

import pyarrow as pa
import pytest

from elastic.core.ids import UnitId
from elastic.core.pipeline import describe_pipeline
from elastic.core.view import JobView
from elastic.job.keys import KeyStatus, KeyTableStatus, list_key_tables, list_keys
from elastic.operators import CountByKey, Stage
from elastic.results import Description
from elastic.routing import Groupings, KeyTable, TableGrouping
from tests.elastic.control.test_key_loads import TASKS, Key, node_of, routing_of
from tests.elastic.driver.parts import make_coordinator

TABLE = {6: 5, 7: 5, 8: 2}  # of the second stage: tasks 2 and 5 have guests
STAGES = [Stage(CountByKey(), "key", name, grouping="table") for name in ("first", "second")]


@pytest.fixture
def pipeline() -> Description:
    first = describe_pipeline(STAGES[:1], pa.schema([("key", pa.int64())]), TASKS)
    return replace(first, stages=(*first.stages, replace(first.stages[0], name="second")))


@pytest.fixture
def view() -> JobView:
    routing = routing_of(TABLE)  # tasks 0 and 1 are on node-1, 2 and 3 on node-2, 4 and 5 on node-3
    nodes = (
        node_of("node-1", {UnitId(0, 0): [Key(12, 1, 3.0, 30), Key(18, 1, 1.0, 10)]}, epoch=1),
        node_of("node-2", {UnitId(1, 2, guests=True): [Key(8, 1, 4.0, 40)]}),
        node_of("node-3", {UnitId(1, 5, guests=True): [Key(6, 7, 2.0, 20), Key(7, 1, 0.5, 5, heavy=False)]}),
    )
    return replace(make_coordinator().view(), nodes=nodes, routing=routing)


def test_the_heaviest_keys_of_all_stages_come_first(view: JobView, pipeline: Description) -> None:
    found = list_keys(view, pipeline, (0, 1), 100)
    assert [(key.stage, key.hash) for key in found] == [
        ("second", 8),
        ("first", 12),
        ("second", 6),
        ("first", 18),
        ("second", 7),
    ]
    for top in (1, 2, 4):
        assert list_keys(view, pipeline, (0, 1), top) == found[:top]
    assert [key.hash for key in list_keys(view, pipeline, (1,), 2)] == [8, 6]


def test_a_key_has_its_share_of_its_stage_and_both_of_its_nodes(view: JobView, pipeline: Description) -> None:
    [_, second, *_] = list_keys(view, pipeline, (1,), 10)
    assert second.share == pytest.approx(2 / 6.5)
    expected = KeyStatus("key 6", 6, "second", 5, True, "node-3", "node-1", 7, 2.0, second.share, 20)
    assert second == expected
    assert sum(key.share for key in list_keys(view, pipeline, (0,), 10)) == pytest.approx(1.0)


def test_tables_are_listed_with_the_guests_of_every_task(pipeline: Description) -> None:
    groupings = Groupings(TASKS, (TableGrouping(), TableGrouping(KeyTable.from_entries(TABLE))))
    assert list_key_tables(groupings, pipeline) == [
        KeyTableStatus("first", 0, {}),
        KeyTableStatus("second", 3, {2: 1, 5: 2}),
    ]
