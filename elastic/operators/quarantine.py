"""Quarantined rows, with the tracebacks of the operator's failures."""

import traceback
from types import TracebackType

import pyarrow as pa

from elastic.errors import InvalidOutput
from elastic.operators.rows import as_json

QUARANTINE = pa.schema([("row", pa.string()), ("error", pa.string())])
_ENGINE = "elastic.operators"


def format_traceback(error: BaseException) -> str:
    """Return the traceback without the frames of the engine around the operator."""
    if isinstance(error, InvalidOutput):
        return str(error)
    return "".join(traceback.format_exception(type(error), error, _skip_engine_frames(error.__traceback__)))


def _skip_engine_frames(frames: TracebackType | None) -> TracebackType | None:
    """Return the frames from the first one outside the engine on; all frames if there is none."""
    frame = frames
    while frame is not None and str(frame.tb_frame.f_globals.get("__name__", "")).startswith(_ENGINE):
        frame = frame.tb_next
    return frame if frame is not None else frames


class Quarantine:
    """Rows on which the operator failed, with the errors."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.errors: list[str] = []

    def add(self, rows: list[dict[str, object]], error: BaseException) -> None:
        text = format_traceback(error)
        self.rows += map(as_json, rows)
        self.errors += [text] * len(rows)

    def extend(self, other: "Quarantine") -> None:
        """Add the rows of another quarantine."""
        self.rows += other.rows
        self.errors += other.errors

    def table(self) -> pa.Table | None:
        return pa.table([self.rows, self.errors], schema=QUARANTINE) if self.rows else None
