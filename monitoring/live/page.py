"""The live page: one self-contained document, and the state that it asks for every second."""

from __future__ import annotations

import json
from pathlib import Path

from monitoring.live.glance import Glance
from monitoring.web.headers import headers_of

PAGE = (Path(__file__).parent / "page.html").read_text()
PATH, STATE = "/live/", "/live/state/"
HEADERS = headers_of(PAGE, asks=True)


def state(glance: Glance) -> str:
    """The answer to `STATE`: JSON."""
    return json.dumps(glance.plain(), allow_nan=False, separators=(",", ":"))
