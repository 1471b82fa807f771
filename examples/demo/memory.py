"""The free memory of this machine."""

import os
import re
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def find_free_mb(meminfo: Path = _MEMINFO) -> float:
    """Return the memory in MB that programs may still take; what is free where the system does not say so."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) / 1_000
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e6
