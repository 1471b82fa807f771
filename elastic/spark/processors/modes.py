"""Output modes and time modes, as Spark takes them: in any case."""

from elastic.errors import InvalidProcessor
from elastic.operators.timers import TimerKind

_TIME_MODES: dict[str, TimerKind | None] = {"none": None, "processingtime": "processing", "eventtime": "event"}
_OUTPUT_MODES = ("append", "update")


def check_output_mode(mode: str, processor: str) -> None:
    """Raise unless Spark would run a processor in this mode; what it emits is the same in both modes."""
    if not isinstance(mode, str) or mode.lower() not in _OUTPUT_MODES:
        raise InvalidProcessor(processor, f'output_mode is {mode!r}. Use "Append" or "Update"')


def parse_time_mode(mode: str, processor: str) -> TimerKind | None:
    """Return the kind of the timers in a time mode; None if there are none."""
    if not isinstance(mode, str) or mode.lower() not in _TIME_MODES:
        raise InvalidProcessor(processor, f'time_mode is {mode!r}. Use "None", "ProcessingTime" or "EventTime"')
    return _TIME_MODES[mode.lower()]
