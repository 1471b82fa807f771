"""Settings: the nearest place counts, and nonsense is refused by name."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from elastic.errors import InvalidSetting, UnknownSetting
from elastic.settings import Settings

NOWHERE: Mapping[str, str] = {}


def resolved(keywords: Mapping[str, Any] = NOWHERE, spark: Mapping[str, str] = NOWHERE, **environ: str) -> Settings:
    return Settings.resolve(keywords, dict(spark).get, environ)


def test_nothing_set_gives_the_defaults() -> None:
    assert resolved() == Settings()


def test_a_keyword_comes_before_spark_and_spark_before_the_environment() -> None:
    spark = {"spark.elastic.snapshot_seconds": "2"}
    assert resolved({"snapshot_seconds": 3}, spark, ELASTIC_SNAPSHOT_SECONDS="1").snapshot_seconds == 3
    assert resolved({}, spark, ELASTIC_SNAPSHOT_SECONDS="1").snapshot_seconds == 2
    assert resolved(ELASTIC_SNAPSHOT_SECONDS="1").snapshot_seconds == 1


def test_every_setting_can_be_set_in_every_place() -> None:
    for one in fields(Settings):
        default = getattr(Settings(), one.name)
        other = {"fail": "skip", "auto": "zstd", None: "some text of one's own"}.get(default, 7)
        text = {"null_keys": "drop"}.get(one.name, str(other))
        by_spark = resolved({}, {f"spark.elastic.{one.name}": text})
        by_environment = Settings.resolve({}, NOWHERE.get, {f"ELASTIC_{one.name.upper()}": text})
        assert by_spark == by_environment != Settings()
        assert resolved({one.name: getattr(by_spark, one.name)}) == by_spark
        assert type(getattr(by_spark, one.name)) is type(default if default is not None else "")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("heartbeat_seconds", 0, "above zero"),
        ("heartbeat_seconds", -1.0, "above zero"),
        ("heartbeat_seconds", float("nan"), "finite"),
        ("heartbeat_seconds", float("inf"), "finite"),
        ("heartbeat_seconds", "1", "not a number"),
        ("heartbeat_seconds", True, "not a number"),
        ("max_batches_ahead", 1.5, "not a whole number"),
        ("max_batches_ahead", None, "not a whole number"),
        ("heavy_hitters", -1, "above zero"),
        ("on_error", "ignore", "none of 'fail', 'skip'"),
        ("null_keys", None, "none of"),
        ("compression", "gzip", "none of"),
        ("host", 5, "not a text"),
        ("host", "", "not a text"),
    ],
)
def test_a_value_that_cannot_be_right_is_refused(name: str, value: object, why: str) -> None:
    with pytest.raises(InvalidSetting, match=why) as refused:
        resolved({name: value})
    assert (refused.value.name, repr(refused.value.value)) == (name, repr(value))


@pytest.mark.parametrize("text", ["fast", "", "1.5", "0x10"])
def test_a_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="not a whole number"):
        resolved(ELASTIC_MAX_BATCHES_AHEAD=text)


def test_heavy_hitters_are_off_at_zero() -> None:
    assert resolved({"heavy_hitters": 0}).heavy_hitters == 0


def test_an_empty_text_in_the_environment_is_no_text() -> None:
    assert resolved(ELASTIC_HOST="").host is None


def test_an_unknown_keyword_is_answered_with_the_nearest_setting() -> None:
    with pytest.raises(UnknownSetting, match="Did you mean 'snapshot_seconds'"):
        resolved({"snapshot_second": 1})


def test_the_secret_is_never_shown() -> None:
    assert "hush" not in repr(resolved({"secret": "hush hush hush hush"}))
    with pytest.raises(InvalidSetting) as refused:
        resolved({"secret": b"hush hush hush hush"})
    assert "hush" not in str(refused.value)
