"""Two runs of a job differ in everything that a restart may change; results and state are those of one process.

A sample by default; `make restarts` runs all cells.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import elastic
from tests.restarts.matrix import CELLS, Cell
from tests.restarts.play import Play

pytestmark = pytest.mark.spark
_SAMPLE = (4, 7, 11, 14)  # each differs in many settings


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = elastic.local_session(4)
    session.sparkContext.setLogLevel("OFF")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    session.stop()


@pytest.mark.parametrize(
    "number",
    [number if number in _SAMPLE else pytest.param(number, marks=pytest.mark.long) for number in range(len(CELLS))],
)
def test_a_restart_with_other_settings_changes_no_result(spark: SparkSession, tmp_path: Path, number: int) -> None:
    cell: Cell = CELLS[number]
    print(f"cell {number}: {cell.title}")
    assert Play(spark, cell, tmp_path).run() == []
