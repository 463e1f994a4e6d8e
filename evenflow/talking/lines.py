"""Log records with figures: a person reads the text, a program the fields."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_FIELDS = "evenflow_fields"


def with_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a call of a logger takes as `extra`: JSON-able figures beside the text."""
    return {_FIELDS: dict(fields)}


class JsonLines(logging.Formatter):
    """One JSON object a line: ts (UTC), level, logger, message, the record's fields, and `error` for a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of JSON."""
        shown = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            shown["error"] = self.formatException(record.exc_info)
        fields = {name: value for name, value in getattr(record, _FIELDS, {}).items() if name not in shown}
        return json.dumps({**shown, **fields}, default=str)
