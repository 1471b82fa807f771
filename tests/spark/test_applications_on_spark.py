"""The applications on a real Spark: every window equals a batch computation while the job scales."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from examples.frequent_patterns.texts import make_vocabulary
from examples.harness import Application, RunSettings, run_windows
from examples.harness.balance import ScaleStep
from examples.harness.report import format_verdict
from examples.harness.results import Results
from examples.harness.spark_source import run_on_spark
from examples.self_join.application import TradeSelfJoin
from examples.skewed_words.application import SkewedWords
from examples.tpch_q5.application import RevenueByNation
from examples.tpch_q5.stream import Purchases
from examples.tpch_q5.tables import Tables
from examples.workloads import KeyStream, Pace, SkewedTexts, Trades, make_symbols

pytestmark = pytest.mark.spark

PACE = Pace(rows_per_batch=200, every_ms=100, batches_per_interval=4)
WORDS = SkewedWords(SkewedTexts(KeyStream(make_vocabulary(500), 2, 8, 0.85, 1.0), PACE), PACE)
JOIN = TradeSelfJoin(Trades(KeyStream(make_symbols(50), 2, 8, 0.85, 1.0), PACE), window_ms=500)

CUSTOMERS, SUPPLIERS = (KeyStream(pa.array(np.arange(count)), 2, 8, 0.8, 1.0) for count in (100, 60))
QUERY = RevenueByNation(Purchases(Tables.generate(100, 60), CUSTOMERS, SUPPLIERS, PACE), intervals_per_window=2)


@pytest.mark.parametrize("application", [WORDS, JOIN, QUERY])
def test_all_windows_are_right_while_the_job_scales(
    application: Application, spark: SparkSession, tmp_path: Path
) -> None:
    results = Results(application)
    with run_on_spark(spark, tmp_path.as_uri(), application, results, nodes=2, tasks=8) as stream:
        settings = RunSettings(5, steps=(ScaleStep(3, 0.5),))
        summary = run_windows(application, stream, results, settings)
        migration = stream.job.migration
        assert migration is not None
        migration.wait(60)
    assert summary.is_right, format_verdict(summary)
    assert len(stream.job.assignment().nodes) == 3
