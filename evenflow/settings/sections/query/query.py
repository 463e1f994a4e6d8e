"""A query: its key, event time, windows, aggregates, filter and views."""

from __future__ import annotations

from typing import Any, Self

from pydantic import model_validator

from evenflow.grammar.column_types import ANY_VALUE
from evenflow.settings.durations import format_duration
from evenflow.settings.sections.query import part_checks
from evenflow.settings.sections.query.column_checks import check_columns
from evenflow.settings.sections.query.columns import QueryColumns


class Query(QueryColumns):
    """What is computed.

    A query with any changed field is another query and refuses old state. Its name, its `max_jump` and an
    `out_of_orderness` that grows are no such fields.
    """

    @model_validator(mode="after")
    def _fields_fit_together(self) -> Self:
        self.emission.check_names(self.aggregates)
        part_checks.check_updates(self)
        part_checks.check_row_sizes(self)
        check_columns(self)
        part_checks.check_aggregates(self.with_views())
        part_checks.check_window(self)
        part_checks.check_views(self)
        part_checks.check_summaries(self)
        return self

    def canonical(self) -> dict[str, Any]:
        """Everything that determines results, as plain JSON. The name does not.

        `max_jump` and `out_of_orderness` are those of the beginning.

        Of the views, it holds only what frames carry for views alone. Adding a view that finds its columns in
        the frames does not make another query.
        """
        fields = self.model_dump(mode="json", exclude={"name", "views", "summaries"})
        fields["aggregates"] = {name: str(spec) for name, spec in self.aggregates.items()}
        first = self.first_max_jump
        fields["max_jump"] = None if first is None else format_duration(first)
        fields["out_of_orderness"] = format_duration(self.first_out_of_orderness)
        # Left out at their defaults: what a query does not set is no part of its fingerprint.
        for name in ("columns", "where"):
            if not fields[name]:
                del fields[name]
        if self.explode is None:
            del fields["explode"]
        if self.lookup is None:
            del fields["lookup"]
        else:
            fields["lookup"] = self.lookup.identity()
        for name, default in (("emit", "all"), ("late", "reject")):
            if fields[name] == default:
                del fields[name]
        if self.views:
            carried = self._carried_for_views()
            fields |= {"carried_for_views": carried} if carried else {}
        return fields

    def _carried_for_views(self) -> dict[str, str]:
        """Columns that the frames carry only because a view needs them, with their types.
        "@time": the event time.

        A column of any value stands here as float64, like other undeclared columns. The record of how the
        query began names it.
        """
        from evenflow.aggregates import AggregatePlan

        alone = self.with_views()
        before = alone.value_columns
        timed = AggregatePlan.of(self).timed and not AggregatePlan.of(alone).timed
        values = {
            name: "float64" if kind == ANY_VALUE else kind
            for name, kind in self.value_columns.items()
            # A view that groups by a column may make a text of what was a number.
            if name not in before or (name in self.view_keys and before[name] != kind)
        }
        return values | ({"@time": "int64"} if timed else {})
