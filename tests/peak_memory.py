"""The most memory that this process has taken. A test of memory measures in a process of its own, because
this never falls.
"""

from __future__ import annotations

import re
from pathlib import Path


def peak() -> int:
    """In KiB. Not `ru_maxrss`, which begins with what the parent takes: a child would have to exceed that
    before it rises.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert line is not None, "Linux says this of every process"
    return int(line[1])
