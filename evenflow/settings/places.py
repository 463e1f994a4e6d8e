"""Where a user's services keep what must outlive them, unless the settings say otherwise."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> str:
    """`evenflow` in $XDG_STATE_HOME, which is ~/.local/state unless set. Never a matter of the working directory."""
    return os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "evenflow")


def local_folder(place: str) -> Path | None:
    """The folder of this machine that a setting names. None for a URI of another file system."""
    return None if "://" in place.removeprefix("file://") else Path(place.removeprefix("file:"))
