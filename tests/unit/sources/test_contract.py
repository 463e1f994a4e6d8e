"""Every source keeps the laws of `check_source`, and whoever breaks one is told which. Data sets:
tests/unit/queries.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenflow import queries
from evenflow.queries import BuiltInQuery
from evenflow.sources.datasets import BY_NAME, FILES
from evenflow.sources.formats.generated import FORMATS as GENERATORS
from evenflow.sources.source import Batch, Source, SourceOptions, TableSource, bounded
from evenflow.testing import BrokenLawError, check_query, check_source

ROWS = pa.table({"k": ["a", "b", None, "a"] * 60, "t": range(240), "v": [1.5, None, 0.0, 2.0] * 60})


@pytest.mark.parametrize("name", [generator.name for generator in GENERATORS])
def test_a_generator_keeps_every_law(name: str) -> None:
    check_source(f"{name}:keys=50,tuples=1200,disorder=20ms")


@pytest.mark.parametrize("kind", [item.name for item in FILES])
def test_a_format_of_files_keeps_every_law(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{kind}"
    if kind == "csv":
        path.write_text("k,t,v\n" + "".join(f"a{row % 7},{row},{row / 4}\n" for row in range(300)))
    elif kind == "json":
        path.write_text("".join(f'{{"k": "a{row % 7}", "t": {row}, "v": null}}\n' for row in range(300)))
    elif kind == "words":
        path.write_text("so many words, and so few of them new. " * 40)
        check_source(f"words:{path}", event_rate=10.0)
        return
    else:
        pq.write_table(ROWS, path)
    check_source(f"{kind}:{path}", key="k", time="t")


def test_every_source_is_checked_here_or_with_the_query_that_it_feeds() -> None:
    of_queries = {query.source.partition(":")[0] for query in queries.all_queries()}
    assert set(BY_NAME) == {item.name for item in (*GENERATORS, *FILES)} | (of_queries & set(BY_NAME))


def whole(rest: str, options: SourceOptions) -> TableSource:
    return bounded("whole", ROWS, options, key="k", time="t")


class Twice(TableSource):
    """Goes on at the second call of `batches` where the first has ended."""

    def __init__(self, inner: TableSource) -> None:
        self.__dict__ |= inner.__dict__
        self.left = inner.batches(10)

    def batches(self, tuples: int = 0):
        return self.left


class Large(Twice):
    """Takes no notice of the size that was asked for."""

    def batches(self, tuples: int = 0):
        yield self._whole


class Uneven(Twice):
    """Has a key too few."""

    def batches(self, tuples: int = 0):
        for batch in TableSource.batches(self, tuples):
            yield Batch(columns=batch.columns, keys=batch.keys, times=batch.times.astype("float64"))


def once(rest: str, options: SourceOptions) -> Source:
    return Twice(whole(rest, options))


def large(rest: str, options: SourceOptions) -> Source:
    return Large(whole(rest, options))


def uneven(rest: str, options: SourceOptions) -> Source:
    return Uneven(whole(rest, options))


def stubborn(rest: str, options: SourceOptions) -> Source:
    return whole(rest, SourceOptions())


def test_a_source_of_ones_own_that_breaks_no_law_passes() -> None:
    check_source(whole)


@pytest.mark.parametrize(
    ("source", "law", "words"),
    [
        (once, "each call of `batches`", "a tuple or more"),
        (large, "the size of the batches changes no tuple", r"at most 64 tuples"),
        (uneven, "columns, keys and times of a batch fit", "int64, ms"),
        (stubborn, "the columns that the user chooses", "column_names"),
    ],
)
def test_a_source_that_breaks_a_law_is_told_which(source, law: str, words: str) -> None:
    with pytest.raises(BrokenLawError, match=words) as caught:
        check_source(source)
    assert caught.value.law.startswith(law)


QUERY = BuiltInQuery(
    name="mine",
    what="values by key",
    source=f"{__name__}:whole",
    data="240 rows",
    columns=("k", "t", "v"),
    fields={"key": "k", "time": "t", "window": "60s", "aggregates": {"total": "sum(v)"}},
)


def test_a_query_of_ones_own_that_breaks_no_law_passes() -> None:
    check_query(QUERY)


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"what": "two\nlines"}, "its name, `what`"),
        ({"fields": {**QUERY.fields, "aggregates": {"total": "summ(v)"}}}, "its fields are those of a query"),
        ({"fields": {**QUERY.fields, "key": "other"}}, "its source has the columns"),
        ({"fields": {**QUERY.fields, "aggregates": {"n": "count"}}}, "its source has the columns"),
        ({"source": f"{__name__}:large"}, "its source keeps the laws of a source"),
    ],
)
def test_a_query_that_breaks_a_law_is_told_which(changes: dict, law: str) -> None:
    with pytest.raises(BrokenLawError) as caught:
        check_query(replace(QUERY, **changes))
    assert caught.value.law.startswith(law)
