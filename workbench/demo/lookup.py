"""The lookup file of a built-in query, written from the rows of a data set."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from evenflow.errors import ConfigError
from evenflow.queries import BuiltInQuery
from evenflow.settings.sections.query.lookup import Lookup
from evenflow.sources.datasets import open_source
from evenflow.sources.source import SourceOptions


def write_lookup(query: BuiltInQuery, source: str, folder: Path) -> Lookup:
    """Write the lookup file of this query into the folder. Returns the query's lookup with that file.

    source: that of the stream. Both come from one data set. ConfigError if the stream comes from another one.
    """
    assert query.lookup_words is not None
    lookup = Lookup.model_validate(query.fields["lookup"])
    data_set = query.source.partition(":")[0]
    if source.partition(":")[0] != data_set:
        raise ConfigError(
            f"{query.name} joins its tuples with a table of the data set {data_set!r},"
            f" but the input is {source!r}",
            hint=(
                f"name that data set, as in --input {query.source}, or write"
                " a query of your own (docs/lookup.md)"
            ),
        )
    named = (*lookup.key_of_file, *lookup.columns)
    words = f"{source}{',' if ':' in source else ':'}{query.lookup_words}"
    rows = open_source(words, SourceOptions(columns=named, types=dict(lookup.columns)))
    file = folder / f"lookup-{lookup.file.name}"
    batches = iter(rows.batches())
    first = next(batches).columns.select(list(named))
    with pq.ParquetWriter(file, first.schema) as writer:
        writer.write(first)
        for batch in batches:
            writer.write(batch.columns.select(list(named)))
    return lookup.model_copy(update={"file": file})
