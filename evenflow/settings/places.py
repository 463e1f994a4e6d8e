"""Where services keep files that must outlive them, unless the settings say otherwise."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> str:
    """The folder `evenflow` in $XDG_STATE_HOME (~/.local/state if unset). It does not depend on the working directory."""
    return os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "evenflow")


def local_folder(place: str) -> Path | None:
    """The local folder that a setting names, as a path or a file: URI. None for a URI of another file system."""
    return None if "://" in place.removeprefix("file://") else Path(place.removeprefix("file:"))
