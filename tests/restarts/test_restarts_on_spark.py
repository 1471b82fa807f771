"""Two runs of a job differ in everything that a restart may change; results and state are those of one process.

A sample by default; `make restarts` runs all cells.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.restarts.matrix import CELLS, Cell
from tests.restarts.play import Play
from tests.spark.jobs import changed_conf

pytestmark = pytest.mark.spark
_SAMPLE = (4, 7, 11, 14)  # each differs in many settings


@pytest.mark.parametrize(
    "number",
    [number if number in _SAMPLE else pytest.param(number, marks=pytest.mark.long) for number in range(len(CELLS))],
)
def test_a_restart_with_other_settings_changes_no_result(spark: SparkSession, tmp_path: Path, number: int) -> None:
    cell: Cell = CELLS[number]
    print(f"cell {number}: {cell.title}")
    with changed_conf(spark, spark_sql_session_timeZone="UTC"):
        assert Play(spark, cell, tmp_path).run() == []
