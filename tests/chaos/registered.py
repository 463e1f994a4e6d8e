"""The stream of chaos as Avro, by schemas that a registry hands out."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro

from evenflow.settings import Settings
from tests.pipeline.end_to_end import Stream
from tests.schema_registry import RegistryInMemory

_TUPLES_OF_A_SCHEMA = 400
"""After so many tuples the stream goes on by a new schema, so the registry is asked in mid-stream."""
_COLUMNS = {"i": "long", "f": "double", "g": "double"}


class RegisteredStream(Stream):
    """The same records as of `Stream` for the same seed. Each schema has a column more than the last one."""

    def __init__(self, settings: Settings, registry: RegistryInMemory, *, seed: int) -> None:
        super().__init__(settings, seed=seed)
        self._registry = registry
        self._schema: Any = None
        self._number = 0
        self._encoded = 0

    def encoded(self, row: dict[str, Any]) -> bytes:
        """The record in Confluent's framing."""
        if self._encoded % _TUPLES_OF_A_SCHEMA == 0:
            schema = _schema(self._encoded // _TUPLES_OF_A_SCHEMA)
            self._number = self._registry.register(json.dumps(schema), subject=self.settings.topic("input"))
            self._schema = fastavro.parse_schema(schema)
        self._encoded += 1
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._schema, row)
        return b"\0" + self._number.to_bytes(4, "big") + out.getvalue()


def _schema(more: int) -> dict[str, Any]:
    """The columns of the stream, and so many more that nobody reads."""
    optional = _COLUMNS | {f"unused_{number}": "string" for number in range(more)}
    fields = [{"name": name, "type": ["null", kind], "default": None} for name, kind in optional.items()]
    return {"type": "record", "name": "R", "fields": [{"name": "t", "type": "long"}, *fields]}
