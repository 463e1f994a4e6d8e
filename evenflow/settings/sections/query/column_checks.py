"""Whether the columns of a query can be what they are used as."""

from __future__ import annotations

from evenflow.errors import ConfigError
from evenflow.expressions.columns import Columns
from evenflow.grammar import paths
from evenflow.grammar.column_types import MOST_SCALE
from evenflow.limits import JSON_GROWTH
from evenflow.settings.sections.query.columns import KEY_TYPES, TEXTS, QueryColumns
from evenflow.text.spelling import did_you_mean

_MOST_GROWTH, _MOST_ADDED = 20, 10_000
"""How much longer than a text that it reads a derived text may be if records are taken apart."""


def check_columns(query: QueryColumns) -> None:
    for field, name, special in (("key", query.key, "@key"), ("time", query.time, "@timestamp")):
        if isinstance(name, str) and (not name or (name.startswith("@") and name != special)):
            raise ValueError(f"{field} = {name!r} is no column; write a column's name or '{special}'")
    wrong = [column for column in query.aggregated_columns if column.startswith("@")]
    if wrong:
        raise ValueError(f"{wrong[0]!r} cannot be aggregated: only columns of the record's value can")
    paths.check(
        name
        for name in (*query.key_columns, query.time, *query.carried_columns, *query.lookup_key)
        if not name.startswith("@")
    )
    check_lookup(query)
    try:
        columns = query.resolved
    except ConfigError as error:
        raise ValueError(str(error)) from None  # pydantic reports only a ValueError as a wrong setting
    check_types(query, columns)
    check_derived(query, columns)
    check_exploded(query, columns)


def check_lookup(query: QueryColumns) -> None:
    looked_up = query.looked_up
    explosion = query.explosion
    if explosion is not None and looked_up:
        if len({explosion.within(name) is None for name in query.lookup_key}) > 1:
            raise ValueError(
                f"lookup.key = {list(query.lookup_key)} has columns of the"
                " record and of its elements: take one kind"
            )
        wrong = next((name for name in looked_up if explosion.within(name) is not None), None)
        if wrong is not None:
            raise ValueError(f"lookup.columns has {wrong!r}, which explode = {query.explode!r} takes apart")
    for name in looked_up:
        for setting, names in (("columns", query.columns), ("types", query.types), ("time", (query.time,))):
            if name in names:
                raise ValueError(
                    f"{setting} has {name!r}, but that is a column of the lookup file: a column has one"
                    " source, and lookup.columns says its type. Give the other column another name"
                )
    derived = next((name for name in query.lookup_key if name in query.columns), None)
    if derived is not None:
        raise ValueError(
            f"lookup.key names {derived!r}, a derived column; only a column of the record can be looked up"
        )


def check_types(query: QueryColumns, columns: Columns) -> None:
    typed = {
        *query.key_columns,
        *query.carried_columns,
        *query.lookup_key,
        *(set(columns.read) - {query.time} if query.has_expressions else ()),
    } - set(query.looked_up)
    unread = sorted(set(query.types) - (typed - set(query.columns)))
    if unread:
        known = sorted(typed - set(query.columns))
        raise ValueError(
            f"types names {', '.join(unread)}, but of typed columns the query reads {', '.join(known)}"
            f"{did_you_mean(unread[0], known)}"
        )
    for name in query.key_columns:
        if columns.type_of(name) not in KEY_TYPES:
            raise ValueError(
                f"key column {name!r} cannot be {columns.type_of(name)}: keys are text, whole numbers,"
                " dates, true or false, or raw bytes"
            )
    for name in query.lookup_key:
        if columns.type_of(name) not in KEY_TYPES:
            raise ValueError(
                f"lookup.key {name!r} cannot be {columns.type_of(name)}: what is looked up is text, whole"
                " numbers, dates, true or false"
            )


def check_derived(query: QueryColumns, columns: Columns) -> None:
    if query.time in query.columns:
        raise ValueError(
            f"time = {query.time!r} is a derived column; the event time is a column of the record"
        )
    used = {*query.key_columns, *query.carried_columns}.union(
        *(derived.columns for derived in columns.derived.values())
    )
    used |= set(columns.where.columns) if columns.where is not None else set()
    idle = sorted(set(query.columns) - used)
    if idle:
        misspelt = {name: did_you_mean(idle[0], [name]) for name in sorted(used - set(query.columns))}
        meant = next((f"; or was it meant by {name!r}?" for name, near in misspelt.items() if near), "")
        raise ValueError(
            f"columns defines {', '.join(idle)}, which nothing uses: aggregate it, or leave it out{meant}"
        )
    for name, derived in columns.derived.items():
        if derived.kind.scale > MOST_SCALE:
            raise ValueError(
                f"columns.{name} has {derived.kind.scale} digits behind the point, more than"
                f" {MOST_SCALE}: CAST one of its numbers AS DOUBLE"
            )
    names = [*columns.read, *columns.looked_up, *columns.derived]
    for name in names if query.has_expressions or query.lookup else ():
        twin = next((other for other in names if other != name and other.lower() == name.lower()), None)
        if twin is not None:
            raise ValueError(f"columns {name!r} and {twin!r} are one to SQL, which does not tell A from a")


def check_exploded(query: QueryColumns, columns: Columns) -> None:
    explosion = query.explosion
    if explosion is None:
        return
    if explosion.column in query.columns:
        raise ValueError(f"explode = {query.explode!r} names a derived column: name a column of the record")
    if not query.time.startswith("@") and explosion.within(query.time) is not None:
        raise ValueError(
            f"time = {query.time!r} lies in what explode = {query.explode!r} takes apart; the tuples of a"
            " record have one event time: name another column of the record, or '@timestamp'"
        )
    elements = {name: type_ for name, type_ in columns.read.items() if explosion.within(name) is not None}
    if explosion.way != "list" and set(elements.values()) - TEXTS:
        raise ValueError(
            f"explode = {query.explode!r} makes texts of column {explosion.column!r}, but the query needs "
            f"{elements[explosion.column]}: aggregate it as text, or write lists in JSON"
        )
    check_growth(query, columns)
    if explosion.column in elements and len(elements) > 1:
        inner = next(name for name in elements if name != explosion.column)
        raise ValueError(
            f"an element of {explosion.column!r} cannot be a value and also the object that holds {inner!r}"
        )


def check_growth(query: QueryColumns, columns: Columns) -> None:
    """Refuse derived texts that could be so much longer than a record that no column holds all
    of its elements.
    """
    if not columns.derived:
        return
    from evenflow.expressions.growth import growths

    # A key of several columns is escaped as JSON on top.
    for name, growth in growths(columns).items():
        times = JSON_GROWTH if len(query.key_columns) > 1 and name in query.key_columns else 1
        if growth.factor * times > _MOST_GROWTH or growth.added * times > _MOST_ADDED:
            most = f"{_MOST_GROWTH // times} times and {_MOST_ADDED // times} bytes"
            raise ValueError(
                f"columns.{name} could make a text {growth.factor} times as long as what it reads, and "
                f"{growth.added} bytes longer. With explode, {most} are the most"
            )
