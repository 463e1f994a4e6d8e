"""The live page: one self-contained document, and the state that it asks for every second."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

from monitoring.live.glance import Glance

PAGE = (Path(__file__).parent / "page.html").read_text()
PATH, STATE = "/live/", "/live/state/"


def _hashes(tag: str) -> str:
    """Hashes of the scripts or styles on the page, for the Content-Security-Policy.

    No others may take effect.
    """
    inside = re.findall(f"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inside)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {_hashes('script')}; style-src {_hashes('style')}; style-src-attr 'none'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""With these headers a key, which anyone may have written, does no harm even if the page did not escape it."""


def state(glance: Glance) -> str:
    """The answer to `STATE`: JSON."""
    return json.dumps(glance.plain(), allow_nan=False, separators=(",", ":"))
