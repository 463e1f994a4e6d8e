"""The end-of-stream marker: a record without value whose headers say that a producer has ended.

Each producer writes one marker to each partition. The marker carries the producer's id, how many tuples the
producer wrote to this partition, and how many producers were announced. A partition has ended when so many
different producers have ended. Markers are not tuples, so they are never counted as read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from evenflow.errors import ProtocolError
from evenflow.text.strict_json import read_object, shown

HEADER = "evenflow-end-of-stream"
_ID = re.compile(r"[A-Za-z0-9._-]{1,24}")
_FIELDS = ("producer", "tuples", "producers")
_MOST_BYTES = 1_000
MOST_PRODUCERS = 16
"""Bound of announced producers: their ids travel in the metadata of a committed offset."""
MOST_TUPLES = 2**62


@dataclass(frozen=True, kw_only=True)
class EndOfStream:
    """What a marker says. Raises ProtocolError for values out of range."""

    producer: str
    """Id of the producer that has ended: 1 to 24 of letters, digits, '.', '_' and '-'."""
    tuples: int
    """How many tuples the producer wrote to this partition."""
    producers: int = 1
    """How many producers were announced."""

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.producer):
            raise ProtocolError(
                f"producer id {self.producer!r} must be 1-24 letters, digits, '.', '_' or '-'"
            )
        if not 0 <= self.tuples <= MOST_TUPLES or not 1 <= self.producers <= MOST_PRODUCERS:
            raise ProtocolError(
                f"an end-of-stream marker with {self.tuples} tuples and {self.producers} producers"
            )

    def headers(self) -> list[tuple[str, bytes]]:
        """Headers of the marker record. Its key and value are null."""
        body = {"producer": self.producer, "tuples": self.tuples, "producers": self.producers}
        return [(HEADER, json.dumps(body, sort_keys=True).encode())]

    @classmethod
    def from_headers(cls, headers: Sequence[tuple[str, bytes | str | None]] | None) -> EndOfStream | None:
        """The marker in the headers of a record, or None if there is none.
        Raises ProtocolError if it is damaged.
        """
        for name, value in headers or ():
            if name == HEADER:
                return cls._decoded(value)
        return None

    @classmethod
    def _decoded(cls, value: bytes | str | None) -> EndOfStream:
        try:
            fields = read_object(value, most_bytes=_MOST_BYTES)
            fields.only(_FIELDS)
            return cls(
                producer=fields.text("producer", most=24),
                tuples=fields.whole("tuples", 0, MOST_TUPLES),
                producers=fields.whole("producers", 1, MOST_PRODUCERS),
            )
        except ValueError as error:
            raise ProtocolError(f"unreadable end-of-stream marker {shown(value)}: {error}") from None
