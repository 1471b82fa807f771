"""Durations: one parser for settings, operators and the command line."""

import pytest

from elastic.durations import parse_duration_ms
from elastic.errors import InvalidSetting


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("250 milliseconds", 250),
        ("1 second", 1_000),
        ("10 seconds", 10_000),
        ("  0.5  Minutes ", 30_000),
        ("1.5 hours", 5_400_000),
        ("1 day", 86_400_000),
        ("250ms", 250),
        ("90s", 90_000),
        ("15m", 900_000),
        ("1h", 3_600_000),
        ("2d", 172_800_000),
        ("0 seconds", 0),
    ],
)
def test_a_duration_is_a_number_with_a_unit(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text, "window") == milliseconds


@pytest.mark.parametrize("text", ["", "soon", "10", "-1 seconds", "1 fortnight", "1e3 seconds", "seconds", "1 2 s"])
def test_other_texts_are_refused_with_the_name_of_the_setting(text: str) -> None:
    with pytest.raises(InvalidSetting, match="such as '10 seconds'") as refused:
        parse_duration_ms(text, "watermark_delay")
    assert (refused.value.name, refused.value.value) == ("watermark_delay", text)


def test_a_number_alone_has_the_default_unit_if_there_is_one() -> None:
    assert parse_duration_ms("3600", "--window", default_unit="s") == 3_600_000
