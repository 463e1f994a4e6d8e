"""An Avro schema, compiled: the steps through a record that find the needed cells and pass over everything else.

A step says what to do, and with what (`STEP`). Needed fields stand in line. What nobody needs is a subroutine for each
named type, so that a schema that names types often, or itself, stays as small as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from evenflow.arrays import Int64s, Rows
from evenflow.settings.paths import segments
from partitioner_service.reading.leaves import Leaf, right_scale

BOOL, VARINT, FLOAT4, FLOAT8, BYTES, FIXED, ENUM, NESTED, END, UNION, JUMP, ENTER, REPEAT, CALL, RETURN = (
    range(15)
)
"""What a step does. BOOL to NESTED stand for a value: it is kept, or passed over."""
LAST_VALUE = NESTED
STEP = np.dtype(
    [("op", np.int64), ("leaf", np.int64), ("column", np.int64), ("size", np.int64), ("to", np.int64)]
)
"""A step through a record.

op: what it does.
leaf, column: of a value, -1 where it is passed over.
size: bytes of a value of fixed size, symbols of an enum, or branches of a union.
to: the step that comes next, where it is another than the one behind. Of a union: where its branches begin.
"""
_BYTES = {BOOL: 1, FLOAT4: 4, FLOAT8: 8}

_SIMPLE = {
    "boolean": (BOOL, "bool"),
    "int": (VARINT, "int"),
    "long": (VARINT, "int"),
    "float": (FLOAT4, "float"),
    "double": (FLOAT8, "float"),
    "bytes": (BYTES, "bytes"),
    "string": (BYTES, "text"),
}
_LOGICAL = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "ms",
    ("long", "timestamp-micros"): "us",
    ("long", "timestamp-nanos"): "ns",
    ("bytes", "decimal"): "decimal",
    ("fixed", "decimal"): "decimal",
    ("fixed", "uuid"): "uuid",
}
_MOST_STEPS = 100_000
_DEEPEST = 100


class Unfit(Exception):
    """The schema is none, or none that can be read. The text says why."""


class Steps(NamedTuple):
    """The steps through a record, from step 0 on.

    steps: of STEP.
    branches: where each branch of each union begins, as the number of a step.
    """

    steps: Rows
    branches: Int64s


@dataclass(frozen=True)
class AvroProgram:
    """How records are read, and what the numbers of leaves mean."""

    steps: Steps
    leaves: tuple[Leaf, ...]


def tree_of(names: Sequence[str]) -> dict[str, Any]:
    """Needed columns by path: each node has the columns that it is itself (`""`) and its needed fields by name."""
    root: dict[str, Any] = {}
    for place, name in enumerate(names):
        node = root
        for part in segments(name):
            node = node.setdefault(part, {})
        node[""] = place
    return root


def compiled(texts: Sequence[str], names: Sequence[str]) -> AvroProgram:
    """The steps through records of the last of these schemas, which may name types of the ones before.

    Raises Unfit.
    """
    try:
        return _Compiler().program([json.loads(text) for text in texts], tree_of(names))
    except Unfit:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unfit(f"it is no Avro schema: {type(error).__name__}") from None


@dataclass
class _Step:
    """As STEP has it."""

    op: int
    leaf: int = -1
    column: int = -1
    size: int = 0
    to: int = 0


class _Compiler:
    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._branches: list[int] = []
        self._leaves: dict[Leaf, int] = {}
        self._types: dict[str, tuple[Mapping[str, Any], str]] = {}
        self._routines: dict[str, int] = {}
        self._widths: dict[str, bool] = {}

    def program(self, schemas: Sequence[Any], wanted: Mapping[str, Any]) -> AvroProgram:
        for schema in schemas:
            self._learn(schema, "", 0)
        root, space = self._resolved(schemas[-1], "")
        if not isinstance(root, dict) or root.get("type") != "record":
            raise Unfit("its records are no Avro records")
        self._value(root, space, wanted, -1, 0)
        self._step(_Step(END))
        begins: list[int] = []
        while len(begins) < len(self._routines):  # a routine may call others that are new
            type_, space = self._types[list(self._routines)[len(begins)]]
            begins.append(len(self._steps))
            self._body(type_, space, {}, -1, 0)
            self._step(_Step(RETURN))
        for step in self._steps:
            if step.op == CALL:
                step.to = begins[step.to]
        leaves = tuple(self._leaves)
        branches = np.array(self._branches or [0], np.int64)
        steps = np.array([astuple(step) for step in self._steps], STEP)
        return AvroProgram(Steps(cast(Rows, steps), branches), leaves)

    # ---- names

    def _learn(self, schema: Any, space: str, depth: int) -> None:
        """Named types, wherever they are defined."""
        if depth > _DEEPEST:
            raise Unfit("it is nested too deeply")
        if isinstance(schema, list):
            for one in schema:
                self._learn(one, space, depth + 1)
        elif isinstance(schema, dict):
            kind = schema.get("type")
            if kind in ("record", "error", "enum", "fixed"):
                name = _full(schema["name"], schema.get("namespace", space))
                space = name.rpartition(".")[0]
                self._types.setdefault(name, (schema, space))
                for field in schema.get("fields", ()):
                    self._learn(field["type"], space, depth + 1)
            else:
                self._learn(schema.get("items"), space, depth + 1)
                self._learn(schema.get("values"), space, depth + 1)
                if isinstance(kind, dict | list):
                    self._learn(kind, space, depth + 1)

    def _resolved(self, schema: Any, space: str) -> tuple[Any, str]:
        """A type as it is defined, and the name space in which it is."""
        for _ in range(_DEEPEST):
            if isinstance(schema, str):
                if schema in _SIMPLE or schema == "null":
                    return {"type": schema}, space
                found = self._types.get(_full(schema, space)) or self._types.get(schema)
                if found is None:
                    raise Unfit(f"it names a type that is not there: {schema[:80]}")
                return found
            if isinstance(schema, list):
                return schema, space
            if not isinstance(schema, dict):
                break
            kind = schema["type"]
            if kind in ("record", "error", "enum", "fixed"):
                return self._types[_full(schema["name"], schema.get("namespace", space))]
            if kind in ("array", "map", "null") or (isinstance(kind, str) and kind in _SIMPLE):
                return schema, space
            schema = kind
        raise Unfit("a type is none of Avro's")

    # ---- steps

    def _step(self, step: _Step) -> int:
        if len(self._steps) >= _MOST_STEPS:
            raise Unfit("it is too large")
        self._steps.append(step)
        return len(self._steps) - 1

    def _value_step(self, op: int, leaf: Leaf, column: int, size: int = 0) -> None:
        """A step for a value that this column needs, or none (-1)."""
        number = self._leaves.setdefault(leaf, len(self._leaves)) if column >= 0 else -1
        self._step(_Step(op, number, column, size or _BYTES.get(op, 0)))

    def _value(self, schema: Any, space: str, wanted: Mapping[str, Any], column: int, depth: int) -> None:
        """Steps through one value. wanted: needed fields within it. column: which it is itself, or -1."""
        if depth > _DEEPEST:
            raise Unfit("it is nested too deeply")
        type_, space = self._resolved(schema, space)
        fields = any(name for name in wanted)
        if isinstance(type_, dict) and type_["type"] in ("record", "error") and not fields:
            if column >= 0:
                self._value_step(NESTED, Leaf("nested"), column)
            name = _full(type_["name"], type_.get("namespace", space))
            self._step(_Step(CALL, to=self._routines.setdefault(name, len(self._routines))))
            return
        self._body(type_, space, wanted, column, depth)

    def _body(self, type_: Any, space: str, wanted: Mapping[str, Any], column: int, depth: int) -> None:
        if isinstance(type_, list):
            self._union(type_, space, wanted, column, depth)
            return
        kind = type_["type"]
        if kind == "null":
            return
        if kind in ("record", "error"):
            if column >= 0:
                self._value_step(NESTED, Leaf("nested"), column)
            for field in type_["fields"]:
                of_field = wanted.get(field["name"], {})
                self._value(field["type"], space, of_field, of_field.get("", -1), depth + 1)
        elif kind in ("array", "map"):
            self._repeated(type_, space, column, depth)
        elif kind == "enum":
            symbols = tuple(enumerate(map(str, type_["symbols"])))
            self._value_step(ENUM, Leaf("enum", symbols=symbols), column, len(symbols))
        else:
            self._scalar(type_, kind, column)

    def _scalar(self, type_: Mapping[str, Any], kind: str, column: int) -> None:
        logical = _LOGICAL.get((kind, type_.get("logicalType", "")), "")
        scale = type_.get("scale", 0)
        if logical == "decimal" and not right_scale(scale):
            logical = ""
        if kind == "fixed":
            size = type_["size"]
            if not isinstance(size, int) or not 0 <= size < 2**31:
                raise Unfit("a fixed type has no size")
            if logical == "uuid" and size != 16:
                logical = ""
            self._value_step(FIXED, Leaf("bytes", logical, _scale(logical, scale)), column, size)
            return
        op, holds = _SIMPLE[kind]
        self._value_step(op, Leaf(holds, logical, _scale(logical, scale)), column)

    def _union(
        self, types: Sequence[Any], space: str, wanted: Mapping[str, Any], column: int, depth: int
    ) -> None:
        base = len(self._branches)
        self._branches.extend([0] * len(types))
        self._step(_Step(UNION, size=len(types), to=base))
        jumps = []
        for place, one in enumerate(types):
            self._branches[base + place] = len(self._steps)
            self._value(one, space, wanted, column, depth + 1)
            jumps.append(self._step(_Step(JUMP)))
        for jump in jumps:
            self._steps[jump].to = len(self._steps)

    def _repeated(self, type_: Mapping[str, Any], space: str, column: int, depth: int) -> None:
        """REPEAT reads how many come. The body goes back to it."""
        if column >= 0:
            self._value_step(NESTED, Leaf("nested"), column)
        is_map = type_["type"] == "map"
        items = type_["values"] if is_map else type_["items"]
        if not is_map and self._may_be_empty(items, space, frozenset()):
            raise Unfit("the items of an array take no bytes")
        self._step(_Step(ENTER))
        head = self._step(_Step(REPEAT))
        if is_map:
            self._step(_Step(BYTES))
        self._value(items, space, {}, -1, depth + 1)
        self._step(_Step(JUMP, to=head))
        self._steps[head].to = len(self._steps)

    def _may_be_empty(self, schema: Any, space: str, within: frozenset[str]) -> bool:
        type_, space = self._resolved(schema, space)
        if isinstance(type_, list):
            return False
        kind = type_["type"]
        if kind in ("record", "error"):
            name = _full(type_["name"], type_.get("namespace", space))
            if name not in within and name not in self._widths:
                fields = type_["fields"]
                self._widths[name] = all(
                    self._may_be_empty(field["type"], space, within | {name}) for field in fields
                )
            return self._widths.get(name, True)
        return kind == "null" or (kind == "fixed" and type_["size"] == 0)


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _scale(logical: str, scale: int) -> int:
    return scale if logical == "decimal" else 0
