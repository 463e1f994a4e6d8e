"""Log records with figures: a person reads the text, a program the fields."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_FIELDS = "evenflow_fields"
_PROCESS: dict[str, Any] = {}


def with_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a call of a logger takes as `extra`: JSON-able figures beside the text."""
    return {_FIELDS: dict(fields)}


def on_every_line(**fields: Any) -> None:
    """What every JSON line of this process has from now on: its query, its part of the pipeline, the epoch in force."""
    _PROCESS.update(fields)


class JsonLines(logging.Formatter):
    """One JSON object a line: ts (UTC), level, logger, message, what is on every line, the record's fields, a traceback."""

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
        everywhere = {name: value for name, value in _PROCESS.items() if name not in shown}
        return json.dumps({**shown, **everywhere, **fields}, default=str)
