"""Makes tuples of the columns that were read: derived columns, the condition, the bytes of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import duckdb

from evenflow.expressions.oracle import derived_sql, opened, rewritten
from evenflow.settings import Query
from workbench.verify.input.lookup import joined
from workbench.verify.input.sizes import note_large
from workbench.verify.input.strict_reader import cell_types, filters_before_keys
from workbench.verify.sql import identifier

_HELD = ("partition", "offset", "reason", "key", "time")
_OWN = {name: f'"@{name}"' for name in _HELD}
"""Name of our own columns here. The settings refuse names with @, so no column of the query has such a
name.
"""


def derive(db: duckdb.DuckDBPyConnection, query: Query) -> None:
    """Make `tuples` and `readable` of what `records` and `strict` hold.

    `tuples` has partition, offset, reason, key, time, values v* and `chosen`: whether `query.where` keeps the
    tuple. `readable` has partition, offset, reason, time and `kept` for each record that can be read. kept:
    whether one of the record's tuples is chosen. Neither has a record that is too large (sizes.py) or has no
    row in the lookup file (lookup.py). A record is unreadable if a derived column has no value that fits its
    type, or if the key of a chosen tuple is null. Such a record is then noted in `strict` as unreadable.
    """
    read = joined(db, query, _read(query))
    if _plain(query):
        note_large(db, query, f"SELECT {_tuple(query)} FROM ({read})")
        db.execute(f"CREATE VIEW tuples AS SELECT {_tuple(query)}, true AS chosen FROM ({read})")
    else:
        _with_derived(db, query, read)
    if query.explode is None:
        db.execute(
            'CREATE VIEW readable AS SELECT partition, "offset", reason, time, chosen AS kept FROM tuples'
        )
        return
    db.execute(
        'CREATE TABLE readable AS SELECT s.partition, s."offset", s.reason, s.time, coalesce(t.kept, false)'
        ' AS kept FROM strict s LEFT JOIN (SELECT partition, "offset", bool_or(chosen) AS kept FROM tuples'
        ' GROUP BY ALL) t ON t.partition = s.partition AND t."offset" = s."offset" WHERE s.readable'
    )


def _plain(query: Query) -> bool:
    """Whether tuples are what was read: nothing is derived or looked up, every key is there, no element
    repeats a text of its record.
    """
    return not (
        query.lookup
        or query.resolved.derived
        or query.where is not None
        or _repeats(query)
        or filters_before_keys(query)
    )


def _repeats(query: Query) -> bool:
    return bool(query.repeated_texts) or (query.explode is not None and query.key == "@key")


def _read(query: Query) -> str:
    """SQL of the columns that were read: a row for each record,
    or for each element if records are taken apart.
    """
    names = list(cell_types(query))
    own_columns = ", ".join(f'"{name}" AS {own}' for name, own in _OWN.items())
    if query.explode is not None:  # all such records were read strictly
        parts = [
            f", {f'x{i}[place]' if name in query.element_columns else f'x{i}'} AS {identifier(name)}"
            for i, name in enumerate(names)
        ]
        places = "SELECT *, unnest(range(1, elements + 1)) AS place FROM strict WHERE readable"
        return f"SELECT {own_columns}{''.join(parts)} FROM ({places})"
    cells = "".join(f", x{i} AS {identifier(name)}" for i, name in enumerate(names))
    return " UNION ALL ".join(
        f"SELECT {own_columns}{cells} FROM {table} WHERE readable" for table in ("records", "strict")
    )


def _with_derived(db: duckdb.DuckDBPyConnection, query: Query, read: str) -> None:
    """Make `tuples` of a query with derived columns or a condition.
    Records that do not fit become unreadable.
    """
    opened(db)
    db.execute(f"CREATE TABLE derived AS {_derived(query, read)}")
    if query.explode is not None:  # one tuple that does not fit makes the record unreadable
        db.execute(
            'CREATE TABLE unfit AS SELECT DISTINCT partition, "offset" FROM derived WHERE NOT fits; '
            "UPDATE derived SET fits = false FROM unfit u WHERE derived.partition = u.partition "
            'AND derived."offset" = u."offset"'
        )
    for table in ("records", "strict"):
        db.execute(
            f"UPDATE {table} SET readable = false FROM derived d WHERE {table}.partition = d.partition "
            f'AND {table}."offset" = d."offset" AND NOT d.fits'
        )
    _tell(db)
    note_large(db, query, "SELECT * FROM derived", repeats=_repeats(query))
    db.execute(
        "UPDATE derived SET fits = false FROM large l WHERE derived.partition = l.partition "
        'AND derived."offset" = l."offset"'
    )
    db.execute("CREATE VIEW tuples AS SELECT * EXCLUDE (fits, repeated) FROM derived WHERE fits")


def _tell(db: duckdb.DuckDBPyConnection) -> None:
    """Note in `strict` every record with a value that does not fit, also those that were not read
    strictly.
    """
    why = "'a derived column has no value that fits its type, or a key is null'"
    db.execute(
        f"UPDATE strict SET why = {why} FROM derived d WHERE strict.partition = d.partition "
        'AND strict."offset" = d."offset" AND NOT d.fits'
    )
    db.execute(
        'INSERT INTO strict (partition, "offset", reason, readable, why) '
        f'SELECT DISTINCT partition, "offset", reason, false, {why} FROM derived d WHERE NOT fits '
        'AND NOT EXISTS (FROM strict s WHERE s.partition = d.partition AND s."offset" = d."offset")'
    )


def _derived(query: Query, read: str) -> str:
    columns = query.resolved
    fits = []
    for number, (name, expression) in enumerate(columns.derived.items()):
        # One subquery around the other, because a derived column may use those before it.
        value, fine = derived_sql(expression)
        read = f'SELECT *, {value} AS {identifier(name)}, {fine} AS "@fits {number}" FROM ({read})'
        fits.append(f'"@fits {number}"')
    chosen = "true" if columns.where is None else f"coalesce({rewritten(columns.where)}, false)"
    if filters_before_keys(query):
        parts = [identifier(name) for name in query.key_columns] or [_OWN["key"]]
        fits.append(f"({' AND '.join(f'{part} IS NOT NULL' for part in parts)} OR NOT {chosen})")
    else:
        fits += [f"{identifier(name)} IS NOT NULL" for name in query.key_columns if name not in columns.read]
    verdicts = f"{' AND '.join(fits) or 'true'} AS fits, ({_repeated(query)})::HUGEINT AS repeated"
    return f"SELECT {_tuple(query)}, {chosen} AS chosen, {verdicts} FROM ({read})"


def _repeated(query: Query) -> str:
    """SQL: the bytes of the texts of a record that each of its elements repeats."""
    if not _repeats(query):
        return "0"
    sizes = [f"coalesce(strlen({identifier(name)}), 0)" for name in query.repeated_texts]
    sizes += [f"coalesce(octet_length({_OWN['key']}), 0)"] if query.key == "@key" else []
    return " + ".join(sizes)


def _tuple(query: Query) -> str:
    """SQL of partition, offset, reason, key, time and values, under the names that `tuples` has."""
    own = [f'{_key(query) if name == "key" else own} AS "{name}"' for name, own in _OWN.items()]
    return ", ".join([*own, *_values(query)])


def _key(query: Query) -> str:
    if query.key == "@key":
        return _OWN["key"]
    if len(query.key_columns) > 1:
        parts = {identifier(column): query.column_type(column) for column in query.key_columns}
        return (
            f"CASE WHEN {' AND '.join(f'{part} IS NOT NULL' for part in parts)} THEN {array_key(parts)} END"
        )
    return f"encode({identifier(query.key_columns[0])}::VARCHAR)"


def array_key(parts: Mapping[str, str]) -> str:
    """SQL of the bytes of a key of several columns. parts: SQL of each part -> its type in the settings."""
    written = " || ',' || ".join(_key_part(part, type_) for part, type_ in parts.items())
    return f"encode('[' || {written} || ']')"


def _key_part(name: str, type_: str) -> str:
    """JSON text of a column in a key of several columns.

    DuckDB writes the hex digits of escapes (`\\u001f`) in capitals. Here they are small, as in the pipeline.
    """
    plain = f"to_json({name})::VARCHAR"
    if type_ != "string":
        return plain
    # The text is taken apart into characters, as only those below a space may be changed.
    small = "(CASE WHEN c < ' ' THEN lower(to_json(c)::VARCHAR) ELSE to_json(c)::VARCHAR END)[2:-2]"
    letters = f"[{small} FOR c IN regexp_extract_all({name}, '(?s).')]"
    escapes = f"regexp_matches({name}, '[\\x00-\\x1f]')"
    return f"CASE WHEN {escapes} THEN '\"' || array_to_string({letters}, '') || '\"' ELSE {plain} END"


def _values(query: Query) -> Iterator[str]:
    for number, column in enumerate(query.value_columns):
        yield f"{identifier(column)} AS v{number}"
