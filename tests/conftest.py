"""Hypothesis profiles, the Spark session that tests share, and marks that follow from parameters."""

import gc
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scripts.kafka_broker import KafkaBroker

# `quick` for every run, `long` for `make fuzz`.
settings.register_profile(
    "quick", deadline=None, max_examples=30, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "long", deadline=None, max_examples=2_000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run the Python of the tests
# A JVM of a test lives for seconds: code from the fast compiler and one thread for garbage cost it half the processor
# time. `spark-submit` reads this without a word, unlike the variables of Java itself.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
settings.load_profile(os.environ.get("ELASTIC_TEST_PROFILE", "quick"))


# Modules and collected tests live until the end of the process: the garbage collector need not look at them, neither
# while they are created nor later.
gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but only among the objects of the tests that run."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """Start Spark once for all tests of the process, with eight task slots: at most seven for nodes.

    Tests that change its configuration restore it: Spark parses schemas by that of the session that was used last, so
    a second session would not keep them apart.
    """
    import elastic  # imported late, like Spark: most tests need neither
    from scripts.kafka_broker import connector_jars, find_kafka

    conf = {"spark.jars": connector_jars()} if find_kafka() else {}
    session = elastic.local_session(4, spare_nodes=0, conf=conf)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator["KafkaBroker"]:
    """One real Kafka broker for the tests of a process; they are skipped where it is not downloaded."""
    from scripts.kafka_broker import find_kafka, kafka_broker

    if find_kafka() is None:
        pytest.skip("Kafka is not downloaded; `make kafka-jars` does that where Java and Maven are")
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as started:
        yield started


# Tests of whole runs, which take seconds each, and of timeouts, which wait for them. They start first, all in one
# process, while others fill the cores; `make unit` leaves them out.
SLOW = (
    "tests/elastic/simulation/test_simulation.py",
    "tests/elastic/driver/test_fatal_steps.py",
    "tests/elastic/driver/test_hung_migrations.py",
    "tests/elastic/driver/test_stopping.py",
    "tests/elastic/driver/test_migration_leases.py",
    "tests/elastic/local/test_key_balancing.py",
    "tests/elastic/cli/test_commands.py",
    "tests/elastic/api/test_connections.py",
    "tests/elastic/api/test_server.py",
    "tests/elastic/experiments/",
    "tests/elastic/node/test_isolation.py",
    "tests/elastic/results/test_parquet.py::test_a_crash_at_any_point_leaves_each_result_once",
    "tests/elastic/results/test_expiry.py",
    "tests/elastic/results/test_kafka_sink.py",
    "tests/elastic/results/test_sink_contract.py",
    "tests/examples/test_harness.py",
    "tests/examples/test_demo.py",
    "tests/examples/test_patterns.py::test_many_texts_on_changing_topics",
    "tests/examples/test_patterns.py::test_patterns_are_those_of_the_miner_after_every_batch",
    "tests/examples/test_mining",
    "tests/examples/test_self_join.py",
    "tests/examples/test_tpch_q5.py::test_all_windows_are_right",
    "tests/mdp/table/test_table.py",
    "tests/mdp/learning/test_rendering.py",
    "tests/migration/kernels/test_compiling.py",
    "tests/storage/stores/test_file_faults.py",
)


# Files of Spark tests that take longest: they start first, so that no process ends with a long one alone.
LONGEST_ON_SPARK = (
    "tests/browser/",
    "tests/spark/test_command_line_on_spark.py",
    "tests/spark/test_examples_on_spark.py",
    "tests/spark/test_jobs_on_spark.py",
    "tests/spark/test_ends_on_spark.py",
    "tests/spark/test_standalone_on_spark.py",
    "tests/chaos/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let slow tests start first, and mark them and those that need an S3 server process.

    Spark tests of a file stay in one process, and so do all of the browser.
    """
    items.sort(key=lambda item: not item.nodeid.startswith((*SLOW, *LONGEST_ON_SPARK)))
    for item in items:
        if item.get_closest_marker("spark") or item.get_closest_marker("browser"):
            group = "browser" if item.get_closest_marker("browser") else item.nodeid.partition("::")[0]
            item.add_marker(pytest.mark.xdist_group(group))
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
        kind = (
            item.callspec.params.get("kind")
            if isinstance(item, pytest.Function) and hasattr(item, "callspec")
            else None
        )
        if kind in ("minio", "moto") or "storage/s3/" in item.nodeid:
            item.add_marker(pytest.mark.server)
