"""Results in a table of a real Postgres: each micro-batch once, whoever commits it, and no row differs
after a pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.aggregates import AggregatePlan
from evenflow.errors import (
    ConfigError,
    DataLossError,
    FencedError,
    IncompatibleStateError,
    ServiceError,
)
from evenflow.settings import KafkaSettings, Settings, load_settings, save_settings
from evenflow.settings.views import view
from evenflow.spark import results as spark_results
from evenflow.twostep import key_schema, readable, readable_schema
from spark_consumers.application import run
from spark_consumers.session import make_session
from spark_consumers.sinks import SINKS, check_sink
from spark_consumers.sinks.base import Start
from spark_consumers.sinks.checking import check_writing, sample_rows, settings_for
from spark_consumers.sinks.postgres import Upsert, table_of
from tests.pipeline import end_to_end
from tests.pipeline.postgres_server import PASSWORD, postgres_server
from tests.pipeline.spark_stream import Stream, expected_rows, make_settings
from tests.unit.spark_consumers.admitting import found, refuses_to_lose_or_mix_results, texts
from topics.admin import describe, ensure_topics, pipeline_topics
from workbench.assist.status.results import newest_written
from workbench.lifetime.remains import find
from workbench.result_rows import ResultRows
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.more]

SINK = SINKS["postgres"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture
def database(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Address of a database without tables. The password is in the environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with psycopg.connect(server) as connection:
        connection.execute("DROP SCHEMA IF EXISTS public, other CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.execute("CREATE SCHEMA other")
    return server


def begun(address: str, run: str = "ours", epoch: int = 1) -> Settings:
    """Settings of a query whose table is there, without rows. run: word of the checkpoint."""
    settings = settings_for(SINK, path=f"{address}/table")
    nowhere: Any = None  # making the table asks no Spark
    SINK.writer(settings, Start(spark=nowhere, run=run, epoch=epoch))
    return settings


def batch_rows(settings: Settings, number: int) -> pa.Table:
    rows = sample_rows(AggregatePlan.of(settings.query), 1000 * number)
    return readable(rows, readable_schema(settings.query))


def upsert_of(settings: Settings, *, epoch: int = 1) -> Upsert:
    keys = ["window_start", *key_schema(settings.query).names]
    schema = readable_schema(settings.query)
    return Upsert(table=table_of(settings), schema=schema, keys=keys, run="ours", epoch=epoch)


def write(settings: Settings, *batches: int, epoch: int = 1) -> None:
    for number in batches:
        upsert_of(settings, epoch=epoch).commit(batch_rows(settings, number), number)


def rows_of(address: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(address) as connection:
        return connection.execute(statement.encode()).fetchall()


def test_the_sink_keeps_every_law_and_with_real_spark_reads_back_what_it_wrote(
    database: str, tmp_path: Path
) -> None:
    check_sink(SINK, path=f"{database}/rows")
    check_sink(SINK, path=f"{database}/other/rows")
    session = make_session(Settings(query={"name": "own", "key": "k"}, spark={"checkpoint": str(tmp_path)}))
    try:
        check_writing(SINK, session, settings_for(SINK, path=f"{database}/other/rows"))
    finally:
        session.stop()
    assert rows_of(database, "SELECT count(*), count(DISTINCT (window_start, key)) FROM other.rows") == [
        (18, 18)
    ]


def test_a_micro_batch_that_is_repeated_changes_nothing(database: str) -> None:
    settings = begun(database)
    write(settings, 0, 1)
    before = rows_of(database, 'SELECT xmin::text, ctid::text FROM "table" ORDER BY 1, 2')
    write(settings, 1, 0, 1)
    assert rows_of(database, 'SELECT xmin::text, ctid::text FROM "table" ORDER BY 1, 2') == before
    write(settings, 3)
    expected = pa.concat_tables([batch_rows(settings, number) for number in (0, 1, 3)])
    table = SINK.read_back(settings).read_all()
    assert table.schema == expected.schema
    assert texts(table) == texts(expected)


def test_a_micro_batch_that_was_cut_off_before_its_commit_leaves_nothing_and_comes_again_whole(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = begun(database)
    write(settings, 0)
    whole = Upsert._upsert

    def cut_off(self: Upsert, connection: Any, rows: pa.Table, batch: int) -> None:
        whole(self, connection, rows, batch)
        (own,) = connection.execute("SELECT pg_backend_pid()").fetchone()
        with psycopg.connect(database) as other:  # the server ends the session, as when the driver is killed
            other.execute("SELECT pg_terminate_backend(%s)", [own])

    with monkeypatch.context() as patch:
        patch.setattr(Upsert, "_upsert", cut_off)
        with pytest.raises(ServiceError, match="Postgres refuses the table"):
            write(settings, 1)
    assert SINK.read_back(settings).read_all().num_rows == 6
    assert SINK.position(settings) == {0: 1}
    begun(database, epoch=2)
    write(settings, 1, epoch=2)
    assert SINK.read_back(settings).read_all().num_rows == 12


def test_an_upsert_replaces_the_row_of_the_same_window_and_key(database: str) -> None:
    settings = begun(database)
    write(settings, 0)
    upsert_of(settings).commit(batch_rows(settings, 0).slice(0, 2), 1)
    rows = rows_of(database, 'SELECT _micro_batch, count(*) FROM "table" GROUP BY 1 ORDER BY 1')
    assert rows == [(0, 4), (1, 2)]


def test_a_driver_that_was_overtaken_writes_nothing(database: str) -> None:
    settings = begun(database)
    write(settings, 0)
    begun(database, epoch=2)
    with pytest.raises(FencedError, match=r"another driver \(epoch 2\) .* this one has epoch 1"):
        write(settings, 1)
    write(settings, 1, epoch=2)
    begun(database, epoch=1)
    with pytest.raises(FencedError, match="another driver"):
        write(settings, 2)
    assert SINK.read_back(settings).read_all().num_rows == 12


def test_of_drivers_that_commit_the_same_micro_batches_at_the_same_time_one_does_it(database: str) -> None:
    settings = begun(database)
    for number in range(4):
        with ThreadPoolExecutor(4) as drivers:
            for done in [drivers.submit(partial(write, settings, number)) for _ in range(4)]:
                done.result()
    assert SINK.read_back(settings).read_all().num_rows == 24


def test_rows_between_two_positions_are_those_that_were_committed_between_them(database: str) -> None:
    settings = begun(database)
    write(settings, 0)
    first = SINK.position(settings)
    write(settings, 1)
    second = SINK.position(settings)
    write(settings, 2)
    between = SINK.read_back(settings, after=first, until=second).read_all()
    assert texts(between) == texts(batch_rows(settings, 1))
    assert SINK.read_back(settings, until=first).read_all().num_rows == 6


def test_a_start_is_refused_where_it_would_lose_or_mix_results(database: str) -> None:
    settings = settings_for(SINK, path=f"{database}/table")
    refuses_to_lose_or_mix_results(
        SINK,
        settings,
        lambda: write(begun(database), 0, 1),
        gone="begun micro-batches up to 3",
        missing="there is no table of results",
    )
    assert SINK.loss(settings) is None
    assert newest_written(settings) == (1010 + settings.query.window, None)
    with psycopg.connect(database) as connection:
        connection.execute('DROP TABLE "table"')
    with pytest.raises(DataLossError, match="is gone"):
        SINK.admit(settings, found(planned=1, run="ours"))
    assert (SINK.loss(settings) or "").startswith(f"the table {table_of(settings)} is gone, with the results")
    with pytest.raises(DataLossError, match="was removed while it was used"):
        write(settings, 2)
    with psycopg.connect(database) as connection:
        connection.execute("DELETE FROM evenflow_results")
    lost = SINK.loss(settings) or ""
    assert "and its row in evenflow_results are gone" in lost
    with pytest.raises(DataLossError, match="was removed while it was used") as caught:
        write(settings, 2)
    assert str(SINK.loss_error(settings, lost)) == str(caught.value)
    with psycopg.connect(database) as connection:
        connection.execute("DROP TABLE evenflow_results")
    with pytest.raises(DataLossError, match="was removed while it was used"):
        write(settings, 2)


def test_a_table_that_does_not_fit_is_refused_in_words_and_one_that_fits_is_taken(database: str) -> None:
    settings = settings_for(SINK, path=f"{database}/other/table")
    fields = "window_start timestamptz, window_end timestamptz, key bytea, n bigint, total {}, avg float8, "
    fields += '"lo`w" bigint, hi float8{}, _micro_batch bigint, PRIMARY KEY (window_start, {})'
    for filled, words in {
        (
            "numeric(9,2)",
            "",
            "key",
        ): r"has the column 'total' of type numeric\(9,2\), and the results have the column",
        (
            "bigint",
            ", more text",
            "key",
        ): "has the column 'more' of type text, and the results have no column 'more'",
        ("bigint", "", "window_end"): "the primary key of the table .* is not window_start with",
    }.items():
        with psycopg.connect(database) as connection:
            connection.execute("DROP TABLE IF EXISTS other.table")
            connection.execute(f"CREATE TABLE other.table ({fields.format(*filled)})".encode())
        for look in (SINK.reach, partial(SINK.admit, contents=found())):
            with pytest.raises(IncompatibleStateError, match=words):
                look(settings)
    with psycopg.connect(database) as connection:
        connection.execute("DROP TABLE other.table")
        connection.execute(f"CREATE TABLE other.table ({fields.format('bigint', '', 'key')})".encode())
    SINK.admit(settings, found())
    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO other.table (window_start, key) VALUES ('2026-01-01', 'a')")
    with pytest.raises(IncompatibleStateError, match="has rows, but evenflow_results does not say"):
        SINK.admit(settings, found())


def test_a_password_that_is_wrong_and_a_server_that_is_not_there_are_refused_before_a_topic_is_made(
    database: str,
    kafka_settings: KafkaSettings,
    query_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSWORD", "wr0ng-secret")
    results = {"sink": "postgres", "path": f"{database}/rows"}
    query = {"name": query_name, "key": "@key", "aggregates": {"n": "count"}}
    settings = load_settings(
        query=query,
        input={"partitions": 2},
        kafka=kafka_settings.model_dump(exclude_unset=True),
        spark={"checkpoint": str(tmp_path / "checkpoint")},
        results=results,
    )
    ensure_topics(settings.kafka, [pipeline_topics(settings)["input"]])
    with pytest.raises(ServiceError, match="password authentication failed") as caught:
        run(settings, until_ended=True)
    assert "wr0ng-secret" not in f"{caught.value} {caught.value.hint}"
    assert "PGPASSWORD" in str(caught.value.hint)
    topics = [settings.topic(role) for role in ("routed", "telemetry", "snapshots")]
    assert not describe(settings.kafka, topics)
    nobody = settings_for(SINK, path="postgresql://evenflow@127.0.0.1:1/rows/table")
    with pytest.raises(
        ServiceError, match=r"Postgres refuses the table postgresql://127\.0\.0\.1:1/rows/table"
    ):
        SINK.reach(nobody)


def test_the_parts_of_a_composite_key_are_columns_and_the_primary_key_with_the_window(database: str) -> None:
    query = {"name": "q", "key": ["shop.id", "n"], "types": {"n": "int64"}, "aggregates": {"tuples": "count"}}
    settings = load_settings(
        query=query, input={"partitions": 2}, results={"sink": "postgres", "path": f"{database}/other/pairs"}
    )
    nowhere: Any = None
    SINK.check(settings)
    SINK.writer(settings, Start(spark=nowhere, run="ours", epoch=1))
    keys = [b'["a",1]', b'["q\\"uo",-2]']
    columns = [pa.array(column) for column in ([0, 0], [10, 10], keys, [5, 6])]
    table = pa.table(columns, schema=AggregatePlan.of(settings.query).result_schema)
    for batch in (0, 1):
        upsert_of(settings).commit(readable(table, readable_schema(settings.query)), batch)
    statement = 'SELECT "shop.id", n, tuples, _micro_batch FROM other.pairs ORDER BY n'
    assert rows_of(database, statement) == [('q"uo', -2, 6, 1), ("a", 1, 5, 1)], (
        "upserted, and not there twice"
    )
    read = SINK.read_back(settings).read_all()
    assert texts(read.select(["shop.id", "n"])) == [
        "{'shop.id': 'a', 'n': 1}",
        "{'shop.id': 'q\"uo', 'n': -2}",
    ]
    SINK.admit(settings, found(planned=1, run="ours"))


def test_a_text_with_a_zero_byte_is_written_and_read_back_as_it_is(database: str) -> None:
    settings = settings_for(SINK, path=f"{database}/table")
    settings = settings.model_copy(update={"query": settings.query.model_copy(update={"key": "k"})})
    nowhere: Any = None
    SINK.writer(settings, Start(spark=nowhere, run="ours", epoch=1))
    rows = batch_rows(begun(f"{database}/other"), 0)
    keys = ["a\0b", "a\x1a0b", "\x1a", *map(str, range(3))]
    place = rows.schema.get_field_index("key")
    written = rows.set_column(place, "key", pa.array(keys)).cast(readable_schema(settings.query))
    upsert_of(settings).commit(written, 0)
    assert sorted(SINK.read_back(settings).read_all()["key"].to_pylist()) == sorted(keys)
    assert ("a\x1a0b",) in rows_of(database, 'SELECT key FROM "table"'), "the escaped zero byte"


def test_keys_that_may_be_too_long_for_an_index_are_refused_for_a_new_table_and_said_of_an_old_one(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(SINK, path=f"{database}/table")
    assert settings.query.max_key_bytes > 2_600
    with pytest.raises(ConfigError, match="unable to index one above 2,600") as caught:
        SINK.reach(settings)
    assert "query.max_key_bytes = 2600" in str(caught.value.hint)
    with pytest.raises(ConfigError, match=r"query\.max_key_bytes"):
        SINK.reach(view(settings, "v"))
    SINK.reach(limited(settings, 2_600))
    with pytest.raises(ConfigError, match="unable to index one above 1,300"):
        SINK.reach(limited(settings, 2_600, key="k"))
    SINK.reach(limited(settings, 1_300, key="k"))
    begun(database)
    SINK.reach(settings)
    assert "unable to index one above 2,600" in caplog.text


def limited(settings: Settings, most: int, **query: Any) -> Settings:
    return settings.model_copy(
        update={"query": settings.query.model_copy(update={"max_key_bytes": most, **query})}
    )


@pytest.mark.parametrize("special", ["", "\0", "\x1a"])
def test_the_longest_key_that_is_let_in_fits_into_the_index(database: str, special: str) -> None:
    """Random text does not compress, and each escaped character makes it longer."""
    draw = np.random.default_rng(1)
    if special:
        settings, key = limited(settings_for(SINK, path=f"{database}/table"), 1_300, key="k"), special * 700
        key += "".join(map(chr, draw.integers(33, 127, 600)))
        key = "".join(draw.permutation(list(key)))
    else:
        settings, key = settings_for(SINK, path=f"{database}/table"), draw.bytes(2_600)
    nowhere: Any = None
    SINK.writer(settings, Start(spark=nowhere, run="ours", epoch=1))
    rows = batch_rows(begun(f"{database}/other"), 0).slice(0, 1)
    place = rows.schema.get_field_index("key")
    written = rows.set_column(place, "key", pa.array([key])).cast(readable_schema(settings.query))
    upsert_of(settings).commit(written, 0)
    assert SINK.read_back(settings).read_all()["key"].to_pylist() == [key]


def test_a_pipeline_with_a_view_upserts_every_row_once_and_goes_on_after_a_start_without_repetitions(
    database: str, kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={"max_key_bytes": 2_600, "views": {"counted": {"aggregates": {"tuples": "count"}}}},
        results={"sink": "postgres", "path": f"{database}/rows"},
    )
    stream = Stream(settings)
    stream.write(6)
    stream.end()
    for _ in range(2):
        run(settings, until_ended=True)
    for one, count in ((settings, "n"), (view(settings, "counted"), "tuples")):
        rows = [row for table in ResultRows(one).new() for row in table.to_pylist()]
        written = [(row["window_start"].timestamp() * 1000, row["key"], row[count]) for row in rows]
        assert sorted(written) == sorted(expected_rows(stream))
    assert rows_of(database, 'SELECT count(*) FROM "rows.counted"') == [(len(stream.expected()),)]
    with pytest.raises(
        IncompatibleStateError, match="already holds the results of this query with another checkpoint"
    ):
        SINK.admit(settings, found(run="other"))
    nowhere: Any = None
    with pytest.raises(ConfigError, match="own source"):
        spark_results(nowhere, settings)


@pytest.mark.timeout(280)
def test_verify_finds_no_difference_in_a_table_of_every_type_and_an_export_has_all_of_its_rows(
    database: str, kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = end_to_end.make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={
            "max_key_bytes": 2_600,
            "emit": "changes",
            "columns": {
                "text": "CASE WHEN i % 3 = 0 THEN 'Zürich' WHEN i % 3 = 1 THEN 'b' ELSE '' END",
                "flag": "i > 0",
                "day": "CASE WHEN i > 0 THEN DATE '2026-01-31' WHEN i < -1000 THEN DATE '1969-12-31' END",
            },
            "types": {"f": "decimal(3)", "i": "int64"},
            "aggregates": {
                "money": "sum(f)",
                "mean": "mean(g)",
                "last": "max(text)",
                "any": "max(flag)",
                "newest": "max(day)",
                "few": "collect(g, 2)",
            },
        },
        spark={"buckets": 2},
        results={"sink": "postgres", "path": f"{database}/other/rows"},
    )
    stream = end_to_end.Stream(settings)
    stream.write(3_000)
    stream.end()
    with end_to_end.Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    report = verify(settings)
    assert report.first == (), report.text()
    assert report.exact
    assert report.rows > 500
    file = tmp_path / "settings.json"
    save_settings(settings, file)
    shown = CliRunner().invoke(
        app, ["--config", str(file), "results", "--out", str(tmp_path / "all.parquet")]
    )
    assert shown.exit_code == 0, shown.output
    exported = pq.read_metadata(tmp_path / "all.parquet").num_rows
    assert rows_of(database, "SELECT count(*) FROM other.rows") == [(exported,)]
    assert exported > 500
    (stays,) = [line for line in find(settings, results=True).stays if "postgres" in line]
    assert stays.endswith("other/rows: drop the table by hand, and delete its row in evenflow_results")
