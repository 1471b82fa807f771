"""What a failing operator leaves behind: its traceback, and the rows that were set aside."""

import traceback
from types import TracebackType

import pyarrow as pa

from elastic.errors import InvalidOutput
from elastic.operators.rows import as_json

QUARANTINE = pa.schema([("row", pa.string()), ("error", pa.string())])
_OURS = "elastic.operators"


def told(error: BaseException) -> str:
    """The traceback as the user would see it without the engine around the operator."""
    if isinstance(error, InvalidOutput):
        return str(error)
    return "".join(traceback.format_exception(type(error), error, _without_ours(error.__traceback__)))


def _without_ours(frames: TracebackType | None) -> TracebackType | None:
    """From the first frame that is not the engine's on; all frames, if there is none."""
    frame = frames
    while frame is not None and str(frame.tb_frame.f_globals.get("__name__", "")).startswith(_OURS):
        frame = frame.tb_next
    return frame if frame is not None else frames


class Quarantine:
    """Rows that were set aside, and why."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.errors: list[str] = []

    def add(self, rows: list[dict[str, object]], error: BaseException) -> None:
        text = told(error)
        self.rows += map(as_json, rows)
        self.errors += [text] * len(rows)

    def extend(self, other: "Quarantine") -> None:
        """Take over what another one holds."""
        self.rows += other.rows
        self.errors += other.errors

    def table(self) -> pa.Table | None:
        return pa.table([self.rows, self.errors], schema=QUARANTINE) if self.rows else None
