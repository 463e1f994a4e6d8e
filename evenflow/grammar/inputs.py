"""The words by which a user says how an input is written: the format of a file, the unit of event times."""

from __future__ import annotations

from typing import Literal

FileFormat = Literal["csv", "json", "words", "parquet"]
"""The formats that a user can name with --format."""

TimeUnit = Literal["s", "ms", "us", "iso"]
"""Units of event times. `iso`: text as ISO 8601 writes it."""
