"""What can be refused without a cluster is refused before anything starts."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException

import elastic
from elastic.errors import InvalidJob, InvalidSetting, InvalidStore, NotAnOperator, SparkConnectUnsupported
from elastic.operators import CountByKey, Stage
from elastic.operators.stages import build_stages
from elastic.spark.checks import check_frame, check_trigger, open_store
from elastic.store_access import StoreAccess
from storage.errors import StoreRefused


class RemoteFrame:
    """As PySpark names the class of a DataFrame of Spark Connect."""


RemoteFrame.__module__ = "pyspark.sql.connect.dataframe"


def test_spark_connect_is_refused_in_one_sentence() -> None:
    remote: Any = RemoteFrame()
    with pytest.raises(SparkConnectUnsupported, match="not supported"):
        elastic.run(remote, key="key", operator=CountByKey(), name="words", store="file:///tmp/words")
    something: Any = [1, 2]
    with pytest.raises(InvalidJob, match="df is a list"):
        check_frame(something)


@pytest.mark.parametrize("given", [CountByKey, [CountByKey(), CountByKey], Stage(CountByKey), "CountByKey", None])  # type: ignore[arg-type]
def test_only_operators_are_operators(given: Any) -> None:
    with pytest.raises(NotAnOperator):
        build_stages(given, "key")


def test_a_class_is_answered_with_how_to_make_an_instance() -> None:
    with pytest.raises(NotAnOperator, match=r"CountByKey is a class\. Pass an instance, CountByKey\(\)\."):
        build_stages(CountByKey, "key")  # type: ignore[arg-type]


URLS = ["words", "/srv/words", "", "hdfs://name/words", "file://words", "s3://", "memory:", "memory:x"]


@pytest.mark.parametrize("url", URLS)
def test_a_store_that_no_job_can_use_is_refused_with_one_that_it_can(url: str) -> None:
    with pytest.raises(InvalidStore, match=r"file:///folder or s3://bucket/prefix\.$"):
        open_store(StoreAccess(url))


def test_a_store_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StoreRefused, match="taken"):
        open_store(StoreAccess((tmp_path / "taken").as_uri()))


def test_a_trigger_that_spark_refuses_is_refused_before_nodes_start() -> None:
    def choose(**trigger: str) -> None:
        if trigger != {"processingTime": "5 seconds"}:
            raise IllegalArgumentException(
                "Error parsing '5 parsecs' to interval.\n\tat org.apache.spark.Some.call(x:1)"
            )

    frame: Any = SimpleNamespace(writeStream=SimpleNamespace(trigger=choose))
    check_trigger(frame, {"processingTime": "5 seconds"})
    check_trigger(frame, {})
    with pytest.raises(InvalidSetting, match=r"trigger=.*: Error parsing '5 parsecs' to interval\. Correct it"):
        check_trigger(frame, {"processingTime": "5 parsecs"})


def test_a_trigger_that_spark_does_not_have_is_refused() -> None:
    def choose(*, processingTime: str = "", availableNow: bool = False) -> None: ...  # noqa: N803 - Spark's names

    frame: Any = SimpleNamespace(writeStream=SimpleNamespace(trigger=choose))
    with pytest.raises(InvalidSetting, match="sometimes"):
        check_trigger(frame, {"sometimes": True})
