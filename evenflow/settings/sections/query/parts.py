"""The views and summaries of a query, each as a query of its own, and the windows that each has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from evenflow.grammar.aggregate_spec import AggregateSpec
from evenflow.grammar.emission import Emission
from evenflow.grammar.explosion import Explosion
from evenflow.settings.sections.query.fields import QueryFields
from evenflow.settings.sections.query.summaries import OF_THE_QUERY_ITSELF, Summary


class QueryParts(QueryFields):
    """A query, a view or a summary."""

    def view(self, name: str) -> Self:
        """This view or summary as a query with the name `<query>.<name>`, whose `origin` is this query.

        KeyError if there is no such view or summary.
        """
        if name in self.summaries:
            return self._as_summary(name)
        view = self.views[name]
        changed = {
            "name": f"{self.name}.{name}",
            "aggregates": view.aggregates,
            "window": self.window if view.window is None else view.window,
            "slide": self.slide_ms if view.slide is None else view.slide,
            "emit": view.emit,
            "views": {},
            "summaries": {},
        }
        query = self.model_copy(update=changed)
        query._origin = self
        query._own_key = view.key
        return query

    def _as_summary(self, name: str) -> Self:
        summary = self.summaries[name]
        parts = [self.part(part) for part in summary.of]
        changed = {
            "name": f"{self.name}.{name}",
            "aggregates": summary.aggregates,
            "window": max(part.window for part in parts),
            "slide": parts[0].slide_ms,
            "emit": summary.emit,
            "views": {},
            "summaries": {},
        }
        query = self.model_copy(update=changed)
        query._origin = self
        query._summary = summary
        return query

    def with_views(self, *names: str) -> Self:
        """The query with only these of its views."""
        return self.model_copy(update={"views": {name: self.views[name] for name in names}})

    def part(self, name: str) -> Self:
        """A part of a summary: 'query' or a view of this query, with all rows of all windows.
        KeyError for another name.
        """
        whole = self.origin
        part = whole if name == OF_THE_QUERY_ITSELF else whole.view(name)
        return part.model_copy(update={"emit": "all", "emit_from": None})

    @property
    def summary(self) -> Summary | None:
        """What makes this query a summary. None for a query and for a view."""
        return self._summary

    @property
    def parts(self) -> list[tuple[Self, str]]:
        """The parts of this summary, each with the column by which its rows are grouped. Empty if it is
        none.
        """
        return (
            [] if self._summary is None else [(self.part(name), by) for name, by in self._summary.of.items()]
        )

    @property
    def having(self) -> str | None:
        """The condition for rows to come out. None: all do."""
        return None if self._summary is None else self._summary.having

    @property
    def own_key(self) -> str | None:
        """The column that this view groups by.
        None for a query, and for a view that groups by its query's key.

        `key` and `key_columns` stay those of the query: by these the tuples are read, judged and routed.
        """
        return self._own_key

    @property
    def origin(self) -> Self:
        """The query that routes the tuples. For a view, the query that it is a view of. Otherwise this
        query.
        """
        return self if self._origin is None else self._origin

    @property
    def view_name(self) -> str | None:
        """The name of this view in its `origin`. None for a query that is no view."""
        return None if self._origin is None else self.name.removeprefix(f"{self._origin.name}.")

    @property
    def slides_per_pane(self) -> int:
        """How many panes of the routed frames make one pane of this query: 1 unless a view's slide is longer.

        The panes of the routed frames are the slides of `origin`. A summary aggregates no frames, but rows of
        its panes.
        """
        if self._summary is not None:
            return 1
        return self.slide_ms // self.origin.slide_ms

    @property
    def routed_for(self) -> list[AggregateSpec]:
        """All aggregates for which the routed frames must hold the columns:
        those of the query and of its views.

        Of a summary its own, which are over rows and not over frames.
        """
        if self._summary is not None:
            return list(self.aggregates.values())
        tables = [self.origin.aggregates, *(view.aggregates for view in self.origin.views.values())]
        return [spec for aggregates in tables for spec in aggregates.values()]

    @property
    def slide_ms(self) -> int:
        """The slide in milliseconds. A pane is one slide."""
        assert self.slide is not None
        return self.slide

    @property
    def panes_per_window(self) -> int:
        """Number of panes in a window (window / slide)."""
        return self.window // self.slide_ms

    @property
    def emission(self) -> Emission:
        """The parsed settings `emit` and `late`: which rows of a window are emitted,
        and whether they may be again.
        """
        updates = self.allowed_lateness if self.late == "update" else 0
        return replace(Emission.parse(self.emit), updates=updates)

    @property
    def result_delay(self) -> int:
        """How far (ms) every input partition must be past the end of a window before the window comes out."""
        return self.out_of_orderness + self.allowed_lateness - self.emission.updates

    @property
    def explosion(self) -> Explosion | None:
        """The parsed setting `explode`: how a record becomes several tuples. None if a record is one
        tuple.
        """
        return None if self.explode is None else Explosion.parse(self.explode)

    @property
    def first_max_jump(self) -> int | None:
        """The `max_jump` (ms) with which the query began. None: off.

        Every input partition has it until its state names another one (`PartitionState.max_jumps`).
        """
        return self._first_limits.get("max_jump", self.max_jump)

    @property
    def first_out_of_orderness(self) -> int:
        """The `out_of_orderness` (ms) with which the query began.

        Every input partition has it until its state names a larger one (`PartitionState.disorders`).
        """
        first = self._first_limits.get("out_of_orderness")
        return self.out_of_orderness if first is None else first

    def with_first_limits(self, limits: Mapping[str, int | None]) -> Self:
        """This query as one that began with these limits: `max_jump`, `out_of_orderness` or both,
        in ms (None: off).
        """
        changed = self.model_copy()
        changed._first_limits = {**self._first_limits, **limits}
        changed._origin = None if self._origin is None else self._origin.with_first_limits(limits)
        return changed
