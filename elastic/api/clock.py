"""The time that the API tells, in milliseconds since 1970, as browsers count it."""

import time


def now_ms() -> int:
    return time.time_ns() // 1_000_000
