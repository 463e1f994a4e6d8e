"""Folders in which one process works, and that it leaves behind if it is killed.

A process holds a lock on a file in its folder. The kernel frees the lock when the process has ended, however
that happened. So a folder whose lock is free belongs to nobody.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK = "lock"
_OLD_SECONDS = 60
"""Age from which on a lock that nobody holds counts. A folder that is just being made is not locked yet."""


@contextmanager
def working_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder in `parent`, for its owner alone, which goes at the end. Folders of this prefix that killed
    processes have left there for over a minute go first.

    Where the file system has no locks (NFS without them), such a folder stays.
    """
    remove_left_folders(parent, prefix, lock=_LOCK)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name:
        folder = Path(name)
        with (folder / _LOCK).open("wb") as lock:
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder


def remove_left_folders(parent: Path, prefix: str, *, lock: str) -> None:
    """Remove the folders of this prefix whose file `lock` nobody holds.

    In a folder such as /tmp, every user may make anything under any name. So what is no folder of this user
    stays, and what is no plain file is no lock.
    """
    for folder in parent.glob(f"{prefix}*"):
        with suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                _remove_if_left(folder, folder / lock)


def _remove_if_left(folder: Path, lock: Path) -> None:
    # A named pipe that is opened without O_NONBLOCK can wait for its other end for ever.
    # NFS locks only what is open for writing.
    with os.fdopen(os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or time.time() - status.st_mtime <= _OLD_SECONDS:
            return
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
