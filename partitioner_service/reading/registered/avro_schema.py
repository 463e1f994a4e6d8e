"""An Avro schema, compiled: the steps through a record that find the needed cells and pass over the rest.

A step says what to do, and with what (`STEP`). The steps of needed fields stand in line. A record type that
nobody needs becomes a subroutine, one for each named type. So the steps do not grow with every mention of a
type, and a type may also mention itself. Values that take no bytes have no steps of their own. They add to
the values of the next step, so a record of few bytes takes few steps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from evenflow.grammar.paths import segments
from evenflow.numeric.arrays import Int64s, Rows
from evenflow.reporting.words import printable
from partitioner_service.reading.registered.leaves import Leaf, Leaves, right_scale

(
    BOOL, VARINT, FLOAT4, FLOAT8, BYTES, FIXED, ENUM, NESTED, END, UNION, JUMP, ENTER, REPEAT, CALL, RETURN,
    EMPTY,
) = range(16)  # fmt: skip
"""What a step does. BOOL to NESTED stand for a value, which is kept or passed over.

UNION goes to the branch that the record names. JUMP goes to another step. ENTER and REPEAT are a loop: ENTER
opens it, and REPEAT is its head, which ends it once no items are left. CALL and RETURN are a subroutine. END
is the end of the record. EMPTY stands for records within each other that take no bytes.
"""
LAST_VALUE = NESTED
STEP = np.dtype(
    [
        ("op", np.int64),
        ("leaf", np.int64),
        ("column", np.int64),
        ("size", np.int64),
        ("to", np.int64),
        ("values", np.int64),
    ]
)
"""A step through a record.

op: what the step does.
leaf, column: of a value, -1 if the value is passed over.
size: number of bytes of a value of fixed size, of symbols of an enum, or of branches of a union. Of ENTER and
CALL outside of all loops and subroutines: number of records around the step.
to: the step to go to, for steps that go elsewhere. For a union: where its branches begin in `Steps.branches`.
For EMPTY: how many records are within each other. Outside of loops and subroutines, those around the step
count as well.
values: number of values that begin here. Records, nulls and others without bytes count too.
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
_MOST_VISITS = 150_000
"""How many types are looked at for one schema. A record with needed fields is, wherever it stands."""
_DEEPEST = 100
"""Depth of a schema. Deeper ones are refused before Python's own recursion limit."""
LONGEST_NAME = 1_000
"""Characters of the full name of a type. Each name within a long one would be as long again."""


class Unfit(Exception):
    """The text is no schema, or records of this schema cannot be read. The error's text says why."""


class _Empty(NamedTuple):
    """A type that takes no bytes."""

    values: int
    """Number of values in one of it, itself included."""
    levels: int
    """How many records are within each other in it. 0 if it has no fields."""


_ENDLESS = _Empty(2**40, 2**40)
"""A type that contains itself. It has more values than any record may have."""
_NULL = _Empty(1, 0)


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
    """Bytes of a value of fixed size, symbols of an enum, branches of a union, or records around the step."""
    to: int = 0
    """The step to go to, where the branches of a union begin, or levels of empty records."""
    values: int = 0
    """Number of values that begin here."""


class _AvroCompiler:
    """Compiles one schema.

    column_tree: the needed columns, as `tree_of` makes it. space: the name space of a type's names.

    `_level` is the number of records around the next step outside of loops and subroutines, and 0 within
    them. `_waiting` is what the next step has to say of values without bytes.
    """

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._branches: list[int] = []
        self._leaves = Leaves()
        self._types: dict[str, tuple[Mapping[str, Any], str]] = {}
        self._routines: dict[str, int] = {}
        self._routine_names: list[str] = []
        self._enums: dict[str, Leaf] = {}
        self._empties: dict[str, _Empty | None] = {}
        self._visits = 0
        self._level = 0
        self._waiting = _Empty(0, 0)

    def program(self, schemas: Sequence[Any], column_tree: Mapping[str, Any]) -> AvroProgram:
        for schema in schemas:
            self._learn(schema, "", 0)
        root, space = self._resolved(schemas[-1], "")
        if not isinstance(root, dict) or root.get("type") != "record":
            raise Unfit("its records are no Avro records")
        self._body(root, space, column_tree, -1, 0)
        self._step(_Step(END))
        begins: list[int] = []
        for name in self._routine_names:  # the list grows on the way, because a routine may call others
            type_, space = self._types[name]
            begins.append(len(self._steps))
            self._fields(type_, space, {}, 0)
            self._step(_Step(RETURN))
        # Until now, calls have held the number of a routine: where routines begin is known only here.
        for step in self._steps:
            if step.op == CALL:
                step.to = begins[step.to]
        branches = np.array(self._branches or [0], np.int64)
        rows = [tuple(vars(step).values()) for step in self._steps]
        return AvroProgram(Steps(cast(Rows, np.array(rows, STEP)), branches), self._leaves.all())

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
                if len(name) > LONGEST_NAME:
                    raise Unfit("a name is too long")
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

    # ---- types without bytes

    def _empty(self, type_: Any, space: str) -> _Empty | None:
        """What a type without bytes holds. None if its values take bytes.

        type_, space: as `_resolved` returns them.
        """
        if isinstance(type_, list):
            return None  # a union writes at least the number of its branch
        kind = type_["type"]
        if kind in ("record", "error"):
            name = _full(type_["name"], type_.get("namespace", space))
            if name not in self._empties:
                self._weigh(name)
            return self._empties[name]
        return _NULL if kind == "null" or (kind == "fixed" and _size(type_) == 0) else None

    def _weigh(self, root: str) -> None:
        """Find out what `_empty` says of a record type, and of the record types that this depends on."""
        # A chain of types may be longer than Python's stack, so there is no recursion here.
        inner: dict[str, list[str]] = {}
        waiting = [root]
        while waiting:
            name = waiting.pop()
            if name in self._empties or name in inner:
                continue
            records = self._records_in(name)
            if records is None:
                self._empties[name] = None
            else:
                inner[name] = records
                waiting.extend(records)
        outer: dict[str, list[str]] = {}
        for name, records in inner.items():
            for record in records:
                outer.setdefault(record, []).append(name)
        self._spread_bytes(outer)
        self._count(inner, outer)

    def _spread_bytes(self, outer: Mapping[str, Sequence[str]]) -> None:
        """Note that what holds a type with bytes takes bytes. outer: the types around each type."""
        full = [name for name in outer if name in self._empties and self._empties[name] is None]
        while full:
            for name in outer.get(full.pop(), ()):
                if name not in self._empties:
                    self._empties[name] = None
                    full.append(name)

    def _count(self, inner: Mapping[str, Sequence[str]], outer: Mapping[str, Sequence[str]]) -> None:
        """Count the values of the types that take no bytes, from the innermost on.

        inner, outer: the record types within each type, and around it. A type that is within itself is never
        ready.
        """
        left = {
            name: sum(record not in self._empties for record in records)
            for name, records in inner.items()
            if name not in self._empties
        }
        ready = [name for name, number in left.items() if not number]
        while ready:
            name = ready.pop()
            within = [self._empties[record] or _NULL for record in inner[name]]
            fields = len(self._types[name][0]["fields"])
            values = 1 + fields - len(within) + sum(empty.values for empty in within)
            levels = (fields > 0) + max((empty.levels for empty in within), default=0)
            self._empties[name] = _Empty(min(values, _ENDLESS.values), levels)
            for around in outer.get(name, ()):
                if around in left:
                    left[around] -= 1
                    if not left[around]:
                        ready.append(around)
        for name in left:
            self._empties.setdefault(name, _ENDLESS)

    def _records_in(self, name: str) -> list[str] | None:
        """The record types of the fields of a record type. None if another field takes bytes."""
        records = []
        type_, space = self._types[name]
        for field in type_["fields"]:
            of_field, within = self._resolved(field["type"], space)
            if isinstance(of_field, dict) and of_field["type"] in ("record", "error"):
                records.append(_full(of_field["name"], of_field.get("namespace", within)))
            elif self._empty(of_field, within) is None:
                return None
        return records

    # ---- steps

    def _step(self, step: _Step) -> int:
        """Add a step, with the values without bytes that come before it."""
        # Wherever other steps lead to, nothing waits: a loop, a union and a subroutine end with a step.
        waiting, self._waiting = self._waiting, _Empty(0, 0)
        if waiting.levels:
            self._add(_Step(EMPTY, to=waiting.levels))
        step.values += waiting.values
        return self._add(step)

    def _add(self, step: _Step) -> int:
        if len(self._steps) >= _MOST_STEPS:
            raise Unfit("it is too large")
        self._steps.append(step)
        return len(self._steps) - 1

    def _no_step(self, empty: _Empty) -> None:
        """Count the values of a type without bytes. The next step says so."""
        values = min(self._waiting.values + empty.values, _ENDLESS.values)
        levels = self._level + empty.levels if empty.levels else 0
        self._waiting = _Empty(values, max(self._waiting.levels, levels))

    def _value_step(self, op: int, leaf: Leaf, column: int, size: int = 0, *, name: str = "") -> None:
        """Add a step for a value.

        column: the column that needs it, -1 if none does. name: as of `Leaves.number`.
        """
        number = self._leaves.number(leaf, name) if column >= 0 else -1
        # Of an array, a map and a record other steps count the value.
        values = 0 if op == NESTED else 1
        self._step(_Step(op, number, column, size or _BYTES.get(op, 0), values=values))

    def _value(
        self, schema: Any, space: str, column_tree: Mapping[str, Any], column: int, depth: int
    ) -> None:
        """Add the steps through one value.

        column_tree: the needed fields within it. column: the column it is itself, or -1.
        """
        self._visits += 1
        if self._visits > _MOST_VISITS:
            raise Unfit("it is too large")
        if depth > _DEEPEST:
            raise Unfit("it is nested too deeply")
        type_, space = self._resolved(schema, space)
        if any(name for name in column_tree):
            self._body(type_, space, column_tree, column, depth)
            return
        record = isinstance(type_, dict) and type_["type"] in ("record", "error")
        if record and column >= 0:
            self._value_step(NESTED, Leaf("nested"), column)
        empty = self._empty(type_, space)
        if empty is not None and (record or column < 0):
            self._no_step(empty)
        elif record:
            self._step(_Step(CALL, size=self._level, to=self._routine(type_, space), values=1))
        else:
            self._body(type_, space, {}, column, depth)

    def _routine(self, type_: Mapping[str, Any], space: str) -> int:
        """The number of the subroutine for a record type."""
        name = _full(type_["name"], type_.get("namespace", space))
        if name not in self._routines:
            self._routines[name] = len(self._routines)
            self._routine_names.append(name)
        return self._routines[name]

    def _body(self, type_: Any, space: str, column_tree: Mapping[str, Any], column: int, depth: int) -> None:
        if isinstance(type_, list):
            self._union(type_, space, column_tree, column, depth)
            return
        kind = type_["type"]
        if kind == "null":
            self._no_step(_NULL)
        elif kind in ("record", "error"):
            if column >= 0:
                self._value_step(NESTED, Leaf("nested"), column)
            self._no_step(_NULL)  # the record itself
            self._level += 1
            self._fields(type_, space, column_tree, depth)
            self._level -= 1
        elif kind in ("array", "map"):
            self._repeated(type_, space, column, depth)
        elif kind == "enum":
            self._enum(type_, space, column)
        else:
            self._scalar(type_, kind, column)

    def _fields(
        self, type_: Mapping[str, Any], space: str, column_tree: Mapping[str, Any], depth: int
    ) -> None:
        for field in type_["fields"]:
            of_field = column_tree.get(field["name"], {})
            self._value(field["type"], space, of_field, of_field.get("", -1), depth + 1)

    def _enum(self, type_: Mapping[str, Any], space: str, column: int) -> None:
        name = _full(type_["name"], type_.get("namespace", space))
        if name not in self._enums:
            symbols = tuple(enumerate(map(str, type_["symbols"])))
            for _, symbol in symbols:
                symbol.encode()  # cells hold UTF-8: ValueError for half of a surrogate pair
            self._enums[name] = Leaf("enum", symbols=symbols)
        leaf = self._enums[name]
        self._value_step(ENUM, leaf, column, len(leaf.symbols), name=name)

    def _scalar(self, type_: Mapping[str, Any], kind: str, column: int) -> None:
        logical = _LOGICAL.get((kind, type_.get("logicalType", "")), "")
        scale = type_.get("scale", 0)
        if logical == "decimal" and not right_scale(scale):
            logical = ""
        if kind == "fixed":
            size = _size(type_)
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
        self._step(_Step(UNION, size=len(types), to=base, values=1))
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
        if not is_map and self._empty(*self._resolved(items, space)) is not None:
            raise Unfit("the items of an array take no bytes")
        self._step(_Step(ENTER, size=self._level, values=1))
        head = self._step(_Step(REPEAT))
        level, self._level = self._level, 0  # within the loop, the stack of the scan counts
        if is_map:
            self._step(_Step(BYTES, values=1))
        self._value(items, space, {}, -1, depth + 1)
        self._step(_Step(JUMP, to=head))
        self._level = level
        self._steps[head].to = len(self._steps)


def _size(type_: Mapping[str, Any]) -> int:
    """Bytes of a fixed type. Raises Unfit."""
    size = type_["size"]
    if not isinstance(size, int) or not 0 <= size < 2**31:
        raise Unfit("a fixed type has no size")
    return size


def _full(name: str, space: str) -> str:
    """The full name of a type that is named in this name space."""
    return name if "." in name or not space else f"{space}.{name}"


def _scale(logical: str, scale: int) -> int:
    return scale if logical == "decimal" else 0
