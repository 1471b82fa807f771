"""Durations as text: `10 seconds`, `1.5 hours`, `90s`, `15m`."""

import re

from elastic.errors import InvalidSetting

_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")
_MILLISECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}


def parse_duration_ms(text: str, name: str, *, default_unit: str = "") -> int:
    """Return a duration in milliseconds; raises `InvalidSetting` for the setting `name` if the text is not one.

    A number without a unit has `default_unit`; without a default it is refused.
    """
    match = _FORM.fullmatch(text.lower())
    factor = match and _MILLISECONDS.get(match[2] or default_unit)
    if match is None or factor is None:
        raise InvalidSetting(name, text, "expected a duration such as '10 seconds', '2 minutes' or '90s'")
    return round(float(match[1]) * factor)
