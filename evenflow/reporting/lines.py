"""Log records with figures: a person reads the text, a program reads the fields."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_FIELDS = "evenflow_fields"
"""The attribute of a log record that holds its fields."""
_PROCESS: dict[str, Any] = {}
"""The fields of every line of this process."""


def with_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The argument `extra` for a call of a logger: figures beside the text, which must be possible in
    JSON.
    """
    return {_FIELDS: dict(fields)}


def on_every_line(**fields: Any) -> None:
    """Add these fields to every JSON line of this process from now on,
    such as its query or the epoch in force.
    """
    _PROCESS.update(fields)


class JsonLines(logging.Formatter):
    """Formats a log record as one JSON object on one line.

    It holds ts (UTC), level, logger, message and, after an exception, its traceback as error. Then come the
    fields of every line and the record's own fields.
    """

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
        # A field never replaces one of the names above. The record's own fields replace those of every line.
        fields = {name: value for name, value in getattr(record, _FIELDS, {}).items() if name not in shown}
        everywhere = {name: value for name, value in _PROCESS.items() if name not in shown}
        return json.dumps({**shown, **everywhere, **fields}, default=str)
