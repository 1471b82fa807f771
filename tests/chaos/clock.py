"""The driver's clock, which a test can set forward and back while the driver runs."""

import time
from pathlib import Path

CLOCK = "clock"  # a file in the driver's folder: by how many milliseconds its clock is wrong


def set_clock(folder: str, offset_ms: int) -> None:
    fresh = Path(folder, f"{CLOCK}.new")
    fresh.write_text(str(offset_ms))
    fresh.replace(Path(folder, CLOCK))


def follow_clock(folder: str) -> None:
    """Let `time.time` and `time.time_ns` of this process tell what `set_clock` says; durations stay right."""
    true_time_ns, file = time.time_ns, Path(folder, CLOCK)

    def time_ns() -> int:
        offset_ms = int(file.read_text()) if file.exists() else 0
        return true_time_ns() + offset_ms * 1_000_000

    setattr(time, "time_ns", time_ns)  # noqa: B010 - nothing else may do that
    setattr(time, "time", lambda: time_ns() / 1e9)  # noqa: B010
