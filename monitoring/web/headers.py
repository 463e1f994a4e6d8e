"""Headers of every answer. A page with styles or scripts of its own names them by their hash, and no
others take effect.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping

_COMMON = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_CLOSED = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"

BARE: Mapping[str, str] = {"Content-Security-Policy": f"{_CLOSED}; form-action 'none'", **_COMMON}
"""Headers of an answer that is no document: JSON, figures, an error."""


def headers_of(page: str, *, asks: bool = False, form: bool = False) -> dict[str, str]:
    """Headers of an HTML page. With these, a key, which anyone may have written,
    does no harm even if unescaped.

    page: the document, or its template, with the text of each style and script as it will be served. asks:
    whether its script may ask this server. form: whether it has a form for this server.
    """
    return {
        "Content-Security-Policy": (
            f"{_CLOSED}; script-src {_hashes('script', page)}; style-src {_hashes('style', page)};"
            f" style-src-attr 'none'; img-src data:; connect-src {_own(asks)}; form-action {_own(form)}"
        ),
        **_COMMON,
    }


def _own(allowed: bool) -> str:
    return "'self'" if allowed else "'none'"


def _hashes(tag: str, page: str) -> str:
    inside = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inside)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
