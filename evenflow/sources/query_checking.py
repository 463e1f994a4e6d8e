"""The laws of a query that is ready to run, as functions: its settings and its source fit each other.

`evenflow.testing.check_query` holds a query to them. They stand here because `queries` is below `sources`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from evenflow.contracts import Law, demand
from evenflow.queries import BuiltInQuery, named
from evenflow.settings import Settings
from evenflow.sources import checking
from evenflow.sources.source import SourceOptions

_LONGEST = 100


class _QuerySettings(Settings):
    reads_environment: ClassVar[bool] = False


@dataclass(frozen=True)
class QueryCase:
    """A query whose laws are checked."""

    query: BuiltInQuery
    """The query, of evenflow or of one's own."""

    @cached_property
    def settings(self) -> Settings:
        """Settings of the query. They read no file and no environment."""
        return _QuerySettings(query={"name": self.query.name, **self.query.fields})

    @cached_property
    def source(self) -> checking.SourceCase:
        """Its source, with the options by which `evenflow demo` opens it."""
        options = SourceOptions.for_settings(self.settings, columns=self.query.columns)
        return checking.SourceCase(self.query.source, options)


def _says_what_it_is(case: QueryCase) -> None:
    query = case.query
    for name in ("what", "source", "data"):
        text = getattr(query, name)
        demand(bool(text) and text.isprintable(), name, expected="words on one line", got=repr(text))
    demand(len(query.what) < _LONGEST, "what", expected=f"below {_LONGEST} letters", got=len(query.what))
    lower = query.name == query.name.lower()
    demand(lower, "name", expected="lower-case letters, as of a topic", got=query.name)


def _is_a_query(case: QueryCase) -> None:
    demand(case.settings.query.aggregates, "fields", expected="an aggregate or more", got="none")


def _source_has_what_is_read(case: QueryCase) -> None:
    read, sent = set(case.settings.query.read_as), set(case.source.source.column_names)
    demand(read <= sent, f"source {case.query.source}", expected=f"columns {sorted(read)}", got=sorted(sent))
    if case.query.columns is not None:
        demand(read == sent, "columns", expected=f"only what is read: {sorted(read)}", got=sorted(sent))


def _tuples_have_keys(case: QueryCase) -> None:
    keys = checking.first_tuples(case.source.source, checking.MOST).keys
    some = keys.null_count < len(keys)
    demand(some, f"the first {len(keys)} tuples", expected="keys", got="null in every tuple")


def _source_keeps_its_laws(case: QueryCase) -> None:
    for law in checking.LAWS:
        law.check(case.source)


LAWS: tuple[Law[QueryCase], ...] = (
    Law("its name, `what`, `source` and `data` say what it is", _says_what_it_is),
    Law("its fields are those of a query", _is_a_query),
    Law("its source has the columns that it reads, and with `columns` no others", _source_has_what_is_read),
    Law("its source has tuples, and they have keys", _tuples_have_keys),
    Law("its source keeps the laws of a source", _source_keeps_its_laws),
)


def check_query(query: str | BuiltInQuery) -> None:
    """Hold a query to every law of the contract. Nothing is started.

    query: a registered name, `"module:QUERY"`, or the query itself. Raises BrokenLawError with the law, an
    example, what was expected and what came instead. ConfigError if there is no such query.
    """
    known = named(query) if isinstance(query, str) else query
    case = QueryCase(known)
    for law in LAWS:
        law.hold(case, who=query if isinstance(query, str) else known.name)
