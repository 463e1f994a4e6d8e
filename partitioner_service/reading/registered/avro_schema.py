"""An Avro schema, compiled: the steps through a record that find the needed cells and pass over the rest.

A step says what to do, and with what (`STEP`). The steps of needed fields stand in line. A record type that
nobody needs becomes a subroutine, one for each named type. So the steps do not grow with every mention of a
type, and a type may also mention itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from evenflow.grammar.paths import segments
from evenflow.numeric.arrays import Int64s, Rows
from evenflow.reporting.words import printable
from partitioner_service.reading.registered.leaves import Leaf, right_scale

BOOL, VARINT, FLOAT4, FLOAT8, BYTES, FIXED, ENUM, NESTED, END, UNION, JUMP, ENTER, REPEAT, CALL, RETURN = (
    range(15)
)
"""What a step does. BOOL to NESTED stand for a value, which is kept or passed over.

UNION goes to the branch that the record names. JUMP goes to another step. ENTER and REPEAT are a loop: ENTER
opens it, and REPEAT is its head, which ends it once no items are left. CALL and RETURN are a subroutine. END
is the end of the record.
"""
LAST_VALUE = NESTED
STEP = np.dtype(
    [("op", np.int64), ("leaf", np.int64), ("column", np.int64), ("size", np.int64), ("to", np.int64)]
)
"""A step through a record.

op: what the step does.
leaf, column: of a value, -1 if the value is passed over.
size: number of bytes of a value of fixed size, of symbols of an enum, or of branches of a union.
to: the step to go to, for steps that go elsewhere. For a union: where its branches begin in `Steps.branches`.
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
"""Depth of a schema. Deeper ones are refused before Python's own recursion limit."""


class Unfit(Exception):
    """The text is no schema, or records of this schema cannot be read. The error's text says why."""


class Steps(NamedTuple):
    """The steps through a record, which begins with step 0."""

    steps: Rows
    """Array of STEP."""
    branches: Int64s
    """For each branch of each union, the number of the step where the branch begins."""


@dataclass(frozen=True)
class AvroProgram:
    """How records of one Avro schema are read."""

    steps: Steps
    """Through each record."""
    leaves: tuple[Leaf, ...]
    """Leaf number n is leaves[n]."""


def tree_of(names: Sequence[str]) -> dict[str, Any]:
    """The needed columns as a tree of fields.

    A node has its needed fields by name, and under `""` the column it is itself. A column is the place of its
    name in `names`.
    """
    root: dict[str, Any] = {}
    for place, name in enumerate(names):
        node = root
        for part in segments(name):
            node = node.setdefault(part, {})
        node[""] = place
    return root


def compiled(texts: Sequence[str], names: Sequence[str]) -> AvroProgram:
    """The steps through records of the last of these schemas.

    texts: JSON. A schema may name types of the schemas before it. names: of the needed columns. Raises Unfit.
    """
    try:
        return _AvroCompiler().program([json.loads(text) for text in texts], tree_of(names))
    except Unfit:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unfit(f"it is no Avro schema: {type(error).__name__}") from None


@dataclass
class _Step:
    """A row of STEP in the making."""

    op: int
    """What the step does."""
    leaf: int = -1
    """Leaf of a value, -1 if the value is passed over."""
    column: int = -1
    """Column of a value, -1 if the value is passed over."""
    size: int = 0
    """Bytes of a value of fixed size, symbols of an enum, or branches of a union."""
    to: int = 0
    """The step to go to. For a union: where its branches begin in `Steps.branches`."""


class _AvroCompiler:
    """Compiles one schema.

    column_tree: the needed columns, as `tree_of` makes it. space: the name space of a type's names.
    """

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._branches: list[int] = []
        self._leaves: dict[Leaf, int] = {}
        self._types: dict[str, tuple[Mapping[str, Any], str]] = {}
        self._routines: dict[str, int] = {}
        self._widths: dict[str, bool] = {}

    def program(self, schemas: Sequence[Any], column_tree: Mapping[str, Any]) -> AvroProgram:
        for schema in schemas:
            self._learn(schema, "", 0)
        root, space = self._resolved(schemas[-1], "")
        if not isinstance(root, dict) or root.get("type") != "record":
            raise Unfit("its records are no Avro records")
        self._value(root, space, column_tree, -1, 0)
        self._step(_Step(END))
        begins: list[int] = []
        while len(begins) < len(self._routines):  # a routine may call others that are new
            type_, space = self._types[list(self._routines)[len(begins)]]
            begins.append(len(self._steps))
            self._body(type_, space, {}, -1, 0)
            self._step(_Step(RETURN))
        # Until now, calls have held the number of a routine: where routines begin is known only here.
        for step in self._steps:
            if step.op == CALL:
                step.to = begins[step.to]
        leaves = tuple(self._leaves)
        branches = np.array(self._branches or [0], np.int64)
        steps = np.array([astuple(step) for step in self._steps], STEP)
        return AvroProgram(Steps(cast(Rows, steps), branches), leaves)

    # ---- names

    def _learn(self, schema: Any, space: str, depth: int) -> None:
        """Note every named type, wherever in the schema it is defined."""
        if depth > _DEEPEST:
            raise Unfit("it is nested too deeply")
        if isinstance(schema, list):
            for branch in schema:
                self._learn(branch, space, depth + 1)
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
        """The definition of a type, and the name space of the names in it."""
        for _ in range(_DEEPEST):
            if isinstance(schema, str):
                if schema in _SIMPLE or schema == "null":
                    return {"type": schema}, space
                definition = self._types.get(_full(schema, space)) or self._types.get(schema)
                if definition is None:
                    raise Unfit(f"it names a type that is not there: {printable(schema[:80])}")
                return definition
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
        """Add a step for a value. column: the column that needs it, -1 if none does."""
        number = self._leaves.setdefault(leaf, len(self._leaves)) if column >= 0 else -1
        self._step(_Step(op, number, column, size or _BYTES.get(op, 0)))

    def _value(
        self, schema: Any, space: str, column_tree: Mapping[str, Any], column: int, depth: int
    ) -> None:
        """Add the steps through one value.

        column_tree: the needed fields within it. column: the column it is itself, or -1.
        """
        if depth > _DEEPEST:
            raise Unfit("it is nested too deeply")
        type_, space = self._resolved(schema, space)
        fields = any(name for name in column_tree)
        if isinstance(type_, dict) and type_["type"] in ("record", "error") and not fields:
            if column >= 0:
                self._value_step(NESTED, Leaf("nested"), column)
            name = _full(type_["name"], type_.get("namespace", space))
            self._step(_Step(CALL, to=self._routines.setdefault(name, len(self._routines))))
            return
        self._body(type_, space, column_tree, column, depth)

    def _body(self, type_: Any, space: str, column_tree: Mapping[str, Any], column: int, depth: int) -> None:
        if isinstance(type_, list):
            self._union(type_, space, column_tree, column, depth)
            return
        kind = type_["type"]
        if kind == "null":
            return
        if kind in ("record", "error"):
            if column >= 0:
                self._value_step(NESTED, Leaf("nested"), column)
            for field in type_["fields"]:
                of_field = column_tree.get(field["name"], {})
                self._value(field["type"], space, of_field, of_field.get("", -1), depth + 1)
        elif kind in ("array", "map"):
            self._repeated(type_, space, column, depth)
        elif kind == "enum":
            symbols = tuple(enumerate(map(str, type_["symbols"])))
            for _, symbol in symbols:
                symbol.encode()  # cells hold UTF-8: ValueError for half of a surrogate pair
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
        self, types: Sequence[Any], space: str, column_tree: Mapping[str, Any], column: int, depth: int
    ) -> None:
        """Add the steps of a union: all branches in a row, each with a jump to the end of the union."""
        # Room for all branches is taken first, because a branch may be a union as well.
        base = len(self._branches)
        self._branches.extend([0] * len(types))
        self._step(_Step(UNION, size=len(types), to=base))
        jumps = []
        for place, branch in enumerate(types):
            self._branches[base + place] = len(self._steps)
            self._value(branch, space, column_tree, column, depth + 1)
            jumps.append(self._step(_Step(JUMP)))
        for jump in jumps:
            self._steps[jump].to = len(self._steps)

    def _repeated(self, type_: Mapping[str, Any], space: str, column: int, depth: int) -> None:
        """Add the loop through an array or a map.

        REPEAT reads how many items come, and the body jumps back to REPEAT.
        """
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
        """Whether a value of this type takes no bytes. within: the records around it.

        A record could then claim any number of items without a byte for each of them.
        """
        type_, space = self._resolved(schema, space)
        if isinstance(type_, list):
            return False  # a union writes at least the number of its branch
        kind = type_["type"]
        if kind in ("record", "error"):
            name = _full(type_["name"], type_.get("namespace", space))
            if name not in within and name not in self._widths:
                fields = type_["fields"]
                self._widths[name] = all(
                    self._may_be_empty(field["type"], space, within | {name}) for field in fields
                )
            return self._widths.get(name, True)  # unknown within itself only, where True changes no `all`
        return kind == "null" or (kind == "fixed" and type_["size"] == 0)


def _full(name: str, space: str) -> str:
    """The full name of a type that is named in this name space."""
    return name if "." in name or not space else f"{space}.{name}"


def _scale(logical: str, scale: int) -> int:
    return scale if logical == "decimal" else 0
