"""The columns that a query reads, derives and groups by, with their types."""

from __future__ import annotations

from typing import Literal, Self

from evenflow.expressions.columns import Columns, one_type, resolved
from evenflow.grammar.column_types import ANY_VALUE, ColumnType
from evenflow.settings.sections.query.parts import QueryParts
from evenflow.settings.sections.query.summaries import KEY

TEXTS = frozenset({"string", ANY_VALUE})
"""The types whose values are texts in frames."""
KEY_TYPES = ("string", "int64", "bool", "date")
"""The types that a column of a key can have."""
_TIME_TYPES: dict[str, ColumnType] = {"s": "float64", "ms": "int64", "us": "int64", "iso": "string"}
"""The type of a time column, by its unit."""
_DISTINCT = "count_distinct"
"""The aggregate that takes columns of any value."""
_COUNTING = {_DISTINCT, "count"}
"""The aggregates to which it makes no difference what a value is, beside the former."""


class QueryColumns(QueryParts):
    """A query with its columns."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns that the key is made of. Empty for '@key'."""
        if isinstance(self.key, str):
            return () if self.key == "@key" else (self.key,)
        return self.key

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Columns that results are grouped by: `own_key`, or else `key_columns`. Empty for '@key'."""
        if self._summary is not None:
            return (next((by for by in self._summary.of.values() if by != KEY), KEY),)
        return self.key_columns if self._own_key is None else (self._own_key,)

    @property
    def group_types(self) -> dict[str, str]:
        """The `group_columns`, each with its type."""
        if self._summary is not None:
            return {self.group_columns[0]: self.kind_in(*self.parts[0])}
        return {name: self.column_type(name) for name in self.group_columns}

    def kind_in(self, part: Self, column: str) -> str:
        """The type of the column by which a summary groups the rows of this part."""
        from evenflow.aggregates.plan import outputs_of
        from evenflow.aggregates.result_expressions import column_type

        if column == KEY:
            return next(iter(part.group_types.values()), "raw bytes")
        output = next(output for output in outputs_of(part) if output.label == column)
        result = output.aggregate.result_type(output.call)
        return column_type(result) or str(result)

    @property
    def key_kind(self) -> Literal["raw", "int64", "string"]:
        """What a key is as one column of results: the bytes of '@key', a whole number, or text.

        A key of several columns is text.
        """
        types = list(self.group_types.values())
        if not types:
            return "raw"
        return "int64" if types == ["int64"] else "string"

    @property
    def result_keys(self) -> tuple[str, ...]:
        """Names of the columns that hold the key in results:
        those of its parts if it has several, otherwise `key`.
        """
        return self.group_columns if len(self.group_columns) > 1 else ("key",)

    @property
    def key_name(self) -> str:
        """The name of the key in results for people."""
        return ", ".join(self.group_columns) or "@key"

    @property
    def record_columns(self) -> dict[str, str]:
        """Columns of the record's value, each with the type that it is read as.

        These are the columns of `read_as`, except that the column that `explode` takes apart stands in it as
        a whole, as a `list` or a `string`, in place of the columns of its elements.
        """
        explosion = self.explosion
        if explosion is None:
            return dict(self.read_as)
        outer = {name: type_ for name, type_ in self.read_as.items() if explosion.within(name) is None}
        return outer | {explosion.column: "list" if explosion.way == "list" else "string"}

    @property
    def element_columns(self) -> dict[str, str]:
        """Columns of one element of the column that `explode` takes apart,
        each with the type that it is read as.
        """
        explosion = self.explosion
        if explosion is None:
            return {}
        return {name: type_ for name, type_ in self.read_as.items() if explosion.within(name) is not None}

    @property
    def repeated_texts(self) -> list[str]:
        """Columns of text or any value that stand in each element of a record that `explode` takes apart.

        These are the columns of the record, read or derived, that the key, an aggregate or an expression over
        elements needs. The raw record key is not among them.
        """
        if self.explode is None:
            return []
        elements, columns = self.element_columns, self.resolved
        needed = [*self.key_columns, *self.carried_columns]
        outer = set(columns.read) - set(elements) | set(() if columns.each else columns.looked_up)
        if self.has_expressions:
            from evenflow.expressions.explosion import record_and_element_columns

            once, each = record_and_element_columns(columns, elements)
            outer |= set(once.derived)
            needed += [name for derived in each.derived.values() for name in derived.columns]
            needed += [] if each.where is None else each.where.columns
        return [name for name in dict.fromkeys(needed) if name in outer and columns.type_of(name) in TEXTS]

    def column_type(self, column: str) -> ColumnType:
        """The type of a column.

        A derived column has the type of its expression. Any other column has its declared type. Without a
        declaration, a key column of the query or of a view is string, one of `any_columns` has any value, and
        any other aggregated column is float64.
        """
        if column in self.columns:
            return self.resolved.type_of(column)
        if column in self.any_columns:
            return ANY_VALUE
        text = column in (*self.key_columns, *self.lookup_key, *self.view_keys)
        return self.declared.get(column, "string" if text else "float64")

    @property
    def looked_up(self) -> dict[str, ColumnType]:
        """Columns of the lookup file that a tuple gets, each with its type. Empty without a lookup."""
        return {} if self.lookup is None else self.lookup.columns

    @property
    def computed_columns(self) -> frozenset[str]:
        """Names of the columns that are no columns of the record:
        those that are derived or come from the lookup file.
        """
        return frozenset({*self.columns, *self.looked_up})

    @property
    def lookup_key(self) -> tuple[str, ...]:
        """Columns of the record that are looked up. Empty without a lookup."""
        return () if self.lookup is None else self.lookup.key

    @property
    def lookup_of_elements(self) -> bool:
        """Whether each element of a record that `explode` takes apart is looked up by itself,
        and not the record.
        """
        explosion = self.explosion
        return explosion is not None and any(explosion.within(name) is not None for name in self.lookup_key)

    @property
    def declared(self) -> dict[str, ColumnType]:
        """The declared types of columns of the record and of the lookup file."""
        return {**self.types, **self.looked_up}

    def with_lookup_sha256(self, digest: str) -> Self:
        """This query with this content (SHA-256 in hex) of the lookup file. It has a lookup."""
        assert self.lookup is not None
        changed = self.model_copy(update={"lookup": self.lookup.model_copy(update={"sha256": digest})})
        changed._origin = None if self._origin is None else self._origin.with_lookup_sha256(digest)
        return changed

    @property
    def any_columns(self) -> frozenset[str]:
        """Columns whose values count_distinct takes as they are, of any kind (`ANY_VALUE`).

        These are the undeclared columns of the record that count_distinct reads, and beside it at most
        `count` and the question of expressions whether they are null. A query that has begun has
        those with which it began. Of these, a view that was added may need one as a number:
        `changed_any_columns`.
        """
        columns = self._only_counted
        if columns and self.has_expressions:
            read = self.resolved.read
            columns = frozenset(name for name in columns if read[name] == ANY_VALUE)
        return columns

    @property
    def changed_any_columns(self) -> list[str]:
        """Columns with which the query began as columns of any value,
        and which it now needs as something else.
        """
        return sorted(set(self._begun_any_columns or ()) & set(self.aggregated_columns) - self.any_columns)

    @property
    def begun_any_columns(self) -> tuple[str, ...] | None:
        """The `any_columns` with which the query began. None: by the rule of queries that begin now."""
        return self._begun_any_columns

    def with_any_columns(self, columns: tuple[str, ...] | None) -> Self:
        """This query as one that began with these `any_columns`. This is no setting."""
        changed = self.model_copy()
        changed._begun_any_columns = columns
        changed._origin = None if self._origin is None else self._origin.with_any_columns(columns)
        return changed

    @property
    def _only_counted(self) -> frozenset[str]:
        """`any_columns`, and those like them that expressions read."""
        counted = {spec.column for spec in self.routed_for if spec.function == _DISTINCT}
        others = {spec.column for spec in self.routed_for if spec.function not in _COUNTING}
        known = {*self.key_columns, self.time, *self.declared, *self.columns, *self.lookup_key}
        known |= self.view_keys
        columns = {name for name in counted - others - known if name is not None}
        return frozenset(columns if self._begun_any_columns is None else columns & {*self._begun_any_columns})

    @property
    def _counted_keys(self) -> frozenset[str]:
        """Columns of the key whose values are counted, and of which nothing else is computed. Undeclared
        ones stay text.
        """
        others = {spec.column for spec in self.routed_for if spec.function not in _COUNTING}
        return frozenset(
            {*self.key_columns}.intersection(self.aggregated_columns).difference(others - {None})
        )

    @property
    def aggregated_columns(self) -> list[str]:
        """Columns that the aggregates of the query and of all its views read, sorted."""
        return sorted({spec.column for spec in self.routed_for if spec.column is not None})

    @property
    def view_keys(self) -> frozenset[str]:
        """Columns that views group by in place of the query's key."""
        return frozenset(view.key for view in self.origin.views.values() if view.key is not None)

    @property
    def carried_columns(self) -> list[str]:
        """Columns that frames carry beside the key: those of aggregates, and those that views group by."""
        return sorted({*self.aggregated_columns, *self.view_keys})

    @property
    def has_expressions(self) -> bool:
        """Whether there are derived columns or a condition."""
        return bool(self.columns) or self.where is not None

    @property
    def value_columns(self) -> dict[str, ColumnType]:
        """Columns that the aggregates of the query and of all its views read, and those that views group by.

        Name -> type, sorted by name. Of a summary these are the result columns of its parts that its
        aggregates read.
        """
        if self._summary is not None:
            read = sorted({spec.column for spec in self.aggregates.values() if spec.column is not None})
            owners = {
                name: next((part for part, _ in self.parts if name in part.aggregates), None) for name in read
            }
            return {name: self.kind_in(part, name) for name, part in owners.items() if part is not None}
        derived = self.resolved.derived if self.columns else {}
        types = self.declared
        undeclared = dict.fromkeys(self.any_columns, ANY_VALUE)
        texts = {*self.lookup_key, *self.view_keys, *self._counted_keys}
        return {
            column: (
                derived[column].type
                if column in derived
                else types.get(column, undeclared.get(column, "string" if column in texts else "float64"))
            )
            for column in self.carried_columns
        }

    @property
    def read_as(self) -> dict[str, ColumnType]:
        """Columns that are read from the record's value, key first, each with the type that it is read as.

        '@key' and '@timestamp' are not among them. ValueError if one column is needed as two types that no
        value has both.
        """
        return dict(self.resolved.read)

    @property
    def resolved(self) -> Columns:
        """The columns that are read and derived, and the condition.

        ValueError or ConfigError if they contradict each other (`columns.resolved`).
        """
        uses: dict[str, dict[str, str]] = {}
        counted, types, view_keys = self._only_counted, self.declared, self.view_keys
        texts = view_keys | self._counted_keys
        for column, use, kind in (
            *((name, "the key", types.get(name, "string")) for name in self.key_columns),
            *((name, "the lookup", types.get(name, "string")) for name in self.lookup_key),
            *((name, "the key of a view", types.get(name, "string")) for name in sorted(view_keys)),
            (self.time, "the event time", _TIME_TYPES[self.time_unit]),
            *(
                (
                    (column, "values to count", ANY_VALUE)
                    if column in counted
                    else (column, "a number", types.get(column, "string" if column in texts else "float64"))
                )
                for column in self.aggregated_columns
            ),
        ):
            if not column.startswith("@"):
                uses.setdefault(column, {})[use] = kind
        if not self.has_expressions:
            columns = Columns({column: one_type(column, needed) for column, needed in uses.items()})
        else:
            columns = resolved(self.columns, self.where, uses, types)
        return columns.looked_up_in(self.looked_up, each=self.lookup_of_elements)
