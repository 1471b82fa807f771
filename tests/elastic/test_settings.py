"""Settings: the first place in order of precedence wins, and invalid values are refused by name."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from elastic.errors import InvalidSetting, UnknownSetting
from elastic.settings import Settings

NOWHERE: Mapping[str, str] = {}


def resolve(keywords: Mapping[str, Any] = NOWHERE, spark: Mapping[str, str] = NOWHERE, **environ: str) -> Settings:
    return Settings.resolve(keywords, dict(spark).get, environ)


def test_settings_that_are_not_set_have_their_defaults() -> None:
    assert resolve() == Settings()


def test_a_keyword_comes_before_spark_and_spark_before_the_environment() -> None:
    spark = {"spark.elastic.snapshot_seconds": "2"}
    assert resolve({"snapshot_seconds": 3}, spark, ELASTIC_SNAPSHOT_SECONDS="1").snapshot_seconds == 3
    assert resolve({}, spark, ELASTIC_SNAPSHOT_SECONDS="1").snapshot_seconds == 2
    assert resolve(ELASTIC_SNAPSHOT_SECONDS="1").snapshot_seconds == 1


def test_every_setting_can_be_set_in_every_place() -> None:
    for one in fields(Settings):
        default = getattr(Settings(), one.name)
        other = {"fail": "skip", "auto": "zstd", "table": "all", "on": "off", None: "any text"}.get(default, 7)
        text = {"null_keys": "drop"}.get(one.name, str(other))
        by_spark = resolve({}, {f"spark.elastic.{one.name}": text})
        by_environment = Settings.resolve({}, NOWHERE.get, {f"ELASTIC_{one.name.upper()}": text})
        assert by_spark == by_environment != Settings()
        assert resolve({one.name: getattr(by_spark, one.name)}) == by_spark
        assert type(getattr(by_spark, one.name)) is type(default if default is not None else "")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("heartbeat_seconds", 0, "positive"),
        ("heartbeat_seconds", -1.0, "positive"),
        ("heartbeat_seconds", float("nan"), "finite"),
        ("heartbeat_seconds", float("inf"), "finite"),
        ("heartbeat_seconds", "1", "expected a number"),
        ("heartbeat_seconds", True, "expected a number"),
        ("max_pending_batches", 1.5, "expected an integer"),
        ("max_pending_batches", None, "expected an integer"),
        ("key_statistics_head", -1, "positive"),
        ("standbys", -1, r"it must be 0 or more\."),
        ("spares", -1, r"it must be 0 or more\."),
        ("step_timeout_seconds", -0.5, r"it must be 0 or more\."),
        ("step_timeout_seconds", float("inf"), r"it must be 0 or more and finite\."),
        ("on_error", "ignore", "expected one of 'fail', 'skip'"),
        ("null_keys", None, "expected one of"),
        ("compression", "gzip", "expected one of"),
        ("host", 5, "expected a non-empty string"),
        ("host", "", "expected a non-empty string"),
    ],
)
def test_an_invalid_value_is_refused(name: str, value: object, why: str) -> None:
    with pytest.raises(InvalidSetting, match=why) as refused:
        resolve({name: value})
    assert (refused.value.name, repr(refused.value.value)) == (name, repr(value))


@pytest.mark.parametrize("text", ["fast", "", "1.5", "0x10"])
def test_a_text_that_is_not_a_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="expected an integer"):
        resolve(ELASTIC_MAX_PENDING_BATCHES=text)


def test_an_empty_variable_means_not_set() -> None:
    assert resolve(ELASTIC_HOST="").host is None


def test_the_nearest_setting_is_suggested_for_an_unknown_keyword() -> None:
    with pytest.raises(UnknownSetting, match="Did you mean 'snapshot_seconds'"):
        resolve({"snapshot_second": 1})


def test_the_secret_is_never_printed() -> None:
    assert "hush" not in repr(resolve({"secret": "hush hush hush hush"}))
    with pytest.raises(InvalidSetting) as refused:
        resolve({"secret": b"hush hush hush hush"})
    assert "hush" not in str(refused.value)
