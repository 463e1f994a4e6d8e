"""Clocks of processes that can be set while the processes run."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SOURCE = Path(__file__).with_name("clock.c")
_FILE = "EVENFLOW_CHAOS_CLOCK"
MOST = 1_200
"""Seconds that a clock may be wrong by. Two may be wrong in opposite ways, and a broker takes timestamps up
to an hour ahead of its own clock.
"""


def can_be_set() -> bool:
    """Whether this machine has the C compiler that the clocks need."""
    return shutil.which("cc") is not None


class Clocks:
    """Clocks by name, each shared by all processes that are started while it is `shown`.

    folder: for their files.
    """

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._library = folder / "clock.so"
        self._files = {name: folder / f"clock-{name}" for name in names}
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", self._library, _SOURCE, "-ldl"], check=True)
        for name in names:
            self.set(name, 0)

    def set(self, name: str, seconds: int) -> None:
        """Let this clock be wrong by so many seconds, from now on. Positive is ahead."""
        with open(self._files[name], "r+b" if self._files[name].exists() else "w+b") as file:
            file.write(struct.pack("q", seconds))

    def wrong(self, name: str) -> int:
        """Seconds by which this clock is ahead."""
        return int(struct.unpack("q", self._files[name].read_bytes())[0])

    @contextmanager
    def shown(self, name: str) -> Iterator[None]:
        """Whatever is started within goes by this clock."""
        ours = {"LD_PRELOAD": str(self._library), _FILE: str(self._files[name])}
        before = {variable: os.environ.get(variable) for variable in ours}
        os.environ |= ours
        try:
            yield
        finally:
            for variable, value in before.items():
                if value is None:
                    del os.environ[variable]
                else:
                    os.environ[variable] = value
