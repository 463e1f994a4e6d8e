"""The rows of the lookup file beside what was read of the records (reason `unmatched`)."""

from __future__ import annotations

import duckdb

from evenflow.errors import ConfigError
from evenflow.settings import Query
from evenflow.settings.sections.query.lookup import Lookup
from workbench.verify.input.strict_reader import CSV_NULLS
from workbench.verify.sql import identifier, quoted, sql_type


def joined(db: duckdb.DuckDBPyConnection, query: Query, read: str) -> str:
    """SQL of what `read` gives, and beside it the columns of the lookup file,
    null without a row. Makes `lookup`.

    DuckDB reads the file by itself. Records without a row are noted as rejected if the settings say so.
    Raises what `Lookup.content` raises, and ConfigError if DuckDB cannot read the file.
    """
    lookup = query.lookup
    if lookup is None:
        return read
    _read_file(db, query, lookup)
    on = " AND ".join(f"r.{identifier(name)} = l.k{i}" for i, name in enumerate(lookup.key))
    columns = "".join(f", l.c{i} AS {identifier(name)}" for i, name in enumerate(lookup.columns))
    if lookup.missing == "reject":
        _reject(db, f"SELECT r.* FROM ({read}) r WHERE NOT EXISTS (FROM lookup l WHERE {on})")
    return f"SELECT r.*{columns} FROM ({read}) r LEFT JOIN lookup l ON {on}"


def _read_file(db: duckdb.DuckDBPyConnection, query: Query, lookup: Lookup) -> None:
    lookup.content()  # refuses another content than that of the query
    keys = [
        f"{_value(lookup, name, query.column_type(record))} AS k{i}"
        for i, (record, name) in enumerate(zip(lookup.key, lookup.key_of_file, strict=True))
    ]
    columns = [
        f"{_value(lookup, name, type_)} AS c{i}" for i, (name, type_) in enumerate(lookup.columns.items())
    ]
    file = quoted(str(lookup.file))
    # A folder `country=XX` above the file would else give DuckDB the column `country`.
    source = f"read_parquet({file}, hive_partitioning = false)"
    if not lookup.parquet:
        # All is text first, and no text is null: the same nulls hold as in the pipeline.
        source = (
            f"read_csv({file}, header = true, all_varchar = true, delim = {quoted(lookup.delimiter)}, quote ="
            f" '\"', escape = '\"', nullstr = {quoted(_NO_NULL)}, sample_size = -1, hive_partitioning ="
            " false)"
        )
    try:
        db.execute(f"CREATE TABLE lookup AS SELECT {', '.join(keys + columns)} FROM {source}")
    except duckdb.Error as error:
        raise ConfigError(
            f"DuckDB does not read the lookup file {lookup.file} as the partitioner does:"
            f" {str(error).splitlines()[0]}",
            hint="write the file as Parquet, whose types leave no choice, and begin a query with it",
        ) from None


_NO_NULL = "\\N evenflow has no null here"


def _value(lookup: Lookup, name: str, type_: str) -> str:
    """SQL of a column of the file as a column of this type."""
    cell = identifier(name)
    if lookup.parquet:
        return f"CAST({cell} AS {sql_type(type_)})"
    if type_ == "string":
        return cell
    nulls = ", ".join(quoted(text) for text in CSV_NULLS)
    return f"CASE WHEN {cell} NOT IN ({nulls}) THEN CAST({cell} AS {sql_type(type_)}) END"


def _reject(db: duckdb.DuckDBPyConnection, unmatched: str) -> None:
    """Note these records in `records` and `strict`: they have no tuples."""
    db.execute(
        'CREATE TABLE unmatched AS SELECT DISTINCT "@partition" AS partition, "@offset" AS "offset",'
        f' "@reason" AS reason FROM ({unmatched})'
    )
    for table in ("records", "strict"):
        db.execute(
            f"UPDATE {table} SET readable = false FROM unmatched u WHERE {table}.partition = u.partition "
            f'AND {table}."offset" = u."offset"'
        )
    db.execute(
        "UPDATE strict SET unmatched = true FROM unmatched u WHERE strict.partition = u.partition "
        'AND strict."offset" = u."offset"'
    )
    db.execute(
        'INSERT INTO strict (partition, "offset", reason, readable, unmatched) '
        'SELECT partition, "offset", reason, false, true FROM unmatched u '
        'WHERE NOT EXISTS (FROM strict s WHERE s.partition = u.partition AND s."offset" = u."offset")'
    )
