"""The pages that services of ours serve on this machine."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any


def page(port: int, path: str) -> tuple[int, Any]:
    """HTTP status and JSON of a page, also of one that answers with an error."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
