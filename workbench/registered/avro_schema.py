"""An Avro schema in a form that fastavro takes, with what a `RegisteredCell` needs beside each value.

Types and symbols are numbered and defaults are left out, as fastavro refuses some that Avro's Java library
accepts: letters beyond ASCII in a symbol, and a name without a namespace where a namespace is in force.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from workbench.registered.cell import LONGEST_NAME, TICKS

LOGICAL_TYPE = "evenflow-cell"
"""The logical type of every value but null and records, whatever it is in the registry."""
_KINDS = {
    "boolean": "bool", "int": "int", "long": "int", "float": "float", "double": "float", "bytes": "bytes",
    "string": "text",
}  # fmt: skip
_LOGICAL = frozenset(
    [("int", "date"), ("bytes", "decimal"), ("fixed", "decimal"), ("fixed", "uuid")]
    + [("long", unit) for unit in TICKS]
)
"""The types that a logical type is read for. For any other type it is as none."""
_NAMED = ("record", "error", "enum", "fixed")
_DEEPEST = 100
"""Depth of a schema. The partitioner refuses deeper ones as well."""
_LARGEST_SCALE = 38
"""Largest scale of a decimal. 128 bits have so many digits."""


class AvroSchema:
    """The schema of a record: the last of these texts, which may name types of the texts before it.

    root: for fastavro. types: name -> type, for the names in `root`. A text that is no schema of a record
    raises ValueError, TypeError, KeyError, AttributeError or RecursionError.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.types: dict[str, Any] = {}
        self._definitions: dict[str, tuple[Any, str]] = {}
        self._numbers: dict[str, str] = {}
        self._items: list[Any] = []
        self._widths: dict[str, bool] = {}
        schemas = [json.loads(text) for text in texts]
        for schema in schemas:
            self._learn(schema, "", 0)
        self.root = self._flat(schemas[-1], "")
        if not isinstance(self.root, dict) or self.root["type"] != "record":
            raise ValueError("its records are no Avro records")
        # A record could claim any number of such items without a byte for each of them.
        if any(map(self._takes_no_bytes, self._items)):
            raise ValueError("the items of an array take no bytes")

    def _learn(self, schema: Any, space: str, depth: int) -> None:
        """Note every named type with the namespace that its own names are in. The first of a name counts."""
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        if isinstance(schema, list):
            for branch in schema:
                self._learn(branch, space, depth + 1)
        elif isinstance(schema, dict) and schema.get("type") in _NAMED:
            name = _full(schema["name"], schema.get("namespace", space))
            if len(name) > LONGEST_NAME:
                raise ValueError("a name is too long")
            space = name.rpartition(".")[0]
            self._definitions.setdefault(name, (schema, space))
            for field in schema.get("fields", ()):
                self._learn(field["type"], space, depth + 1)
        elif isinstance(schema, dict):
            for inner in ("items", "values", "type"):
                self._learn(schema.get(inner), space, depth + 1)

    def _flat(self, schema: Any, space: str) -> Any:
        """The schema for fastavro, with a named type where it is first met, and its number after that."""
        if isinstance(schema, list):
            return [self._flat(branch, space) for branch in schema]
        if isinstance(schema, str):
            simple = schema == "null" or schema in _KINDS
            return self._value({"type": schema}) if simple else self._reference(schema, space)
        kind = schema["type"]
        if kind in ("array", "map"):
            inner = "items" if kind == "array" else "values"
            value = self._flat(schema[inner], space)
            if kind == "array":
                self._items.append(value)
            return {"type": kind, inner: value, "logicalType": LOGICAL_TYPE, "cell": ("nested", "", 0)}
        if kind in _NAMED:
            return self._reference(schema["name"], schema.get("namespace", space))
        return self._value(schema) if isinstance(kind, str) and kind in _KINDS else self._flat(kind, space)

    def _reference(self, name: str, space: str) -> Any:
        full = _full(name, space)
        # A name without dots belongs to the namespace around it, or to none.
        full = full if full in self._definitions else name
        if full in self._numbers:
            return self._numbers[full]
        definition, within = self._definitions[full]
        number = self._numbers[full] = f"T{len(self._numbers)}"
        kind = definition["type"]
        if kind in ("enum", "fixed"):
            flat = self._value(definition) | {"name": number}
        else:
            fields = [
                {"name": field["name"], "type": self._flat(field["type"], within)}
                for field in definition["fields"]
            ]
            flat = {"type": kind, "name": number, "fields": fields}
        self.types[number] = flat
        return flat

    def _value(self, schema: dict[str, Any]) -> Any:
        """A type that holds no others."""
        kind, logical, scale = schema["type"], schema.get("logicalType", ""), schema.get("scale", 0)
        if kind == "null":
            return "null"
        flat = {"type": kind, "logicalType": LOGICAL_TYPE}
        if kind == "enum":
            names = {f"S{number}": str(symbol) for number, symbol in enumerate(schema["symbols"])}
            for symbol in names.values():
                symbol.encode()  # no cell can hold half of a surrogate pair: ValueError
            return flat | {"symbols": list(names), "names": names, "cell": ("enum", "", 0)}
        if kind == "fixed":
            flat["size"] = schema["size"]
            if not isinstance(schema["size"], int) or schema["size"] < 0:
                raise ValueError("a fixed type has no size")
        if (kind, logical) not in _LOGICAL:
            logical = ""
        if logical == "decimal" and (type(scale) is not int or not 0 <= scale <= _LARGEST_SCALE):
            logical = ""
        return flat | {"cell": (_KINDS.get(kind, "bytes"), logical, scale if logical == "decimal" else 0)}

    def _takes_no_bytes(self, schema: Any) -> bool:
        if isinstance(schema, list):
            return False  # a union writes at least the number of its branch
        schema = self.types[schema] if isinstance(schema, str) and schema != "null" else schema
        if schema == "null" or "fields" not in schema:
            return schema == "null" or schema.get("size") == 0
        name = schema["name"]
        if name not in self._widths:
            self._widths[name] = True  # within itself only, where it changes no `all`
            self._widths[name] = all(self._takes_no_bytes(field["type"]) for field in schema["fields"])
        return self._widths[name]


def _full(name: str, space: str) -> str:
    """A name of Avro with its namespace."""
    return name if "." in name or not space else f"{space}.{name}"
