"""Where services keep files that must outlive them, unless the settings say otherwise."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

# Names of users may hold an @. What stands before `://` does not matter: a client may skip blanks there.
_PASSWORD = re.compile(r"://[^/]*:[^/]*@")


def without_password(place: str) -> str:
    """The place as it is, a path or URI. ValueError, which does not repeat it, if it holds a password.

    Places are shown in messages and logs, noted in checkpoints and asked for by clients of other systems.
    """
    if _PASSWORD.search(place):
        raise ValueError(
            "it holds a password, and evenflow shows this setting in its messages: leave the password out,"
            " and give it to the client of that place (docs/results.md, docs/security.md#secrets)"
        )
    return place


def state_folder() -> str:
    """The folder `evenflow` in $XDG_STATE_HOME (~/.local/state if unset).
    It does not depend on the working directory.
    """
    return os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "evenflow")


def private_folder(folder: Path) -> None:
    """Make this folder and those above it that are missing, for their owner alone (0700).

    The `state_folder` is evenflow's own, so it is closed to others even if it is there already. Any other
    folder that is there stays as somebody made it, and so does a `state_folder` of another user, such as the
    root of a volume. Raises OSError if a folder cannot be made.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    own = Path(state_folder())
    if own in (folder, *folder.parents):
        status = own.stat()
        if stat.S_IMODE(status.st_mode) & 0o077 and status.st_uid == os.geteuid():
            own.chmod(0o700)


def private_file(file: str, flags: int) -> int:
    """An opener for `open`: the file is readable and writable by its owner alone (0600),
    even if it was there before.
    """
    number = os.open(file, flags, 0o600)
    with suppress(PermissionError):  # another user's file stays as it is
        os.fchmod(number, 0o600)
    return number


def local_folder(place: str) -> Path | None:
    """The local folder that a setting names, as a path or a file: URI. None for a URI of another file
    system.
    """
    return None if "://" in place.removeprefix("file://") else Path(place.removeprefix("file:"))
