"""A summary of a query and a view, with a key each: what comes out is a direct aggregation of the raw
input, in SQL.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from evenflow.settings import Settings
from evenflow.settings.views import view
from evenflow.wire import decode_frame
from tests.pipeline.end_to_end import (
    Pipeline,
    Stream,
    batches_done,
    evenflow,
    has_ended,
    make_settings,
    owners,
)
from tests.pipeline.routed import records
from tests.pipeline.spark_stream import results
from workbench.verify.views import verify_all

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(420)]

QUERY = {
    "columns": {"cell": "i % 7", "start": "i % 5"},
    "aggregates": {"cell": "last(cell)"},
    "views": {"pay": {"key": "start", "window": "2s", "aggregates": {"typical": "quantile(f, 0.5, exact)"}}},
    "summaries": {
        "areas": {
            "of": {"query": "cell", "pay": "key"},
            "aggregates": {"vacant": "count(cell)", "pay": "max(typical)", "worth": "= pay / vacant"},
            "having": "vacant > 0 and pay is not null",
            "emit": "top(3, worth)",
        }
    },
}
DIRECT = """
    WITH ends AS (SELECT DISTINCT unnest(range(t // 1000 * 1000 + 1000, t // 1000 * 1000 + 6000, 1000)) AS e FROM tuples),
    last AS (SELECT e, key, arg_max(i % 7, (t, i % 7)) AS cell FROM ends JOIN tuples ON t >= e - 5000 AND t < e
             WHERE i IS NOT NULL GROUP BY ALL),
    vacant AS (SELECT e, cell, count(*) AS vacant FROM last GROUP BY ALL),
    pay AS (SELECT e, i % 5 AS cell, list_sort(list(f))[greatest(1, ceil(0.5 * count(*))::BIGINT)] AS pay
            FROM ends JOIN tuples ON t >= e - 2000 AND t < e WHERE i IS NOT NULL AND f IS NOT NULL GROUP BY ALL),
    ranked AS (SELECT e, cell, vacant, pay, pay / vacant AS worth,
                      row_number() OVER (PARTITION BY e ORDER BY pay / vacant DESC, cell::VARCHAR) AS rank
               FROM vacant JOIN pay USING (e, cell))
    SELECT e - 5000, cell::VARCHAR, vacant, pay, worth FROM ranked WHERE rank <= 3"""


def direct(stream: Stream) -> dict[tuple[int, bytes], dict[str, Any]]:
    """The first three cells of each window, from the tuples that were in time."""
    accepted, _ = stream.judged()
    rows = [{"key": key, "t": row["t"], "i": row.get("i"), "f": row.get("f")} for key, row in accepted]
    types = [("key", pa.binary()), ("t", pa.int64()), ("i", pa.int64()), ("f", pa.float64())]
    with duckdb.connect() as db:
        db.register("tuples", pa.Table.from_pylist(rows, pa.schema(types)))
        result = db.execute(DIRECT).fetchall()
    return {
        (start, cell.encode()): dict(zip(("vacant", "pay", "worth"), row, strict=True))
        for start, cell, *row in result
    }


def assert_exact(settings: Settings, stream: Stream) -> None:
    """The summary's rows are those of the direct aggregation, and `verify` finds all parts exact."""
    result, _ = results(view(settings, "areas"))
    wanted = direct(stream)
    assert wanted
    assert {
        at: {name: row[name] for name in ("vacant", "pay", "worth")} for at, row in result.items()
    } == wanted
    reports = verify_all(settings)
    assert (reports.exact, reports.ended, len(reports.by_query)) == (True, True, 3), reports.text()


def test_a_summary_is_a_direct_aggregation_of_the_input_with_two_instances_and_though_spark_is_killed(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, query=QUERY, spark={"buckets": 2})
    areas = view(settings, "areas")
    stream = Stream(settings)
    stream.write(2_000)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start_instances("--until-ended", names=("a", "b"))
        pipeline.start("aggregate", "--until-ended")
        pipeline.wait_until(lambda: batches_done(areas, "fused") > 0, timeout=150)
        pipeline.kill("aggregate")
        stream.write(1_500)
        stream.end()
        pipeline.start("aggregate", "--until-ended", name="again")
        pipeline.finish()
    assert_exact(settings, stream)


@pytest.mark.long
def test_a_summary_is_exact_though_workers_are_rescaled_and_partitioners_begin_anew_with_another_seed(
    kafka_settings: Any, query_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query=QUERY,
        partitioner={"workers": 2, "routed_partitions": 5, "instances": 2},
        spark={"buckets": 2},
    )
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:

        def shared() -> bool:
            stream.write(40)
            return owners(settings) == [2, 2]

        pipeline.start("aggregate", "--until-ended")
        instances = pipeline.start_instances()
        stream.write(1_000)
        pipeline.wait_until(shared)
        child = evenflow(pipeline.file, tmp_path / "plan.log", "plan", "--workers", "5")
        assert child.wait(60) == 0, child.output()
        pipeline.wait_until(lambda: 1 in epochs(settings) or stream.write(40))
        stream.write(500)
        # One after the other, so that for a while they have different seeds.
        monkeypatch.setenv("EVENFLOW_PARTITIONER__SEED", "8")
        for instance in instances:
            pipeline.stop(instance)
            stream.write(300)
            again = pipeline.start("partition", "--instance", instance, name=f"{instance}-again")
            pipeline.wait_until(shared)
            assert "learned state is not usable, starting without" in again.output()
            stream.write(500)
        stream.end()
        pipeline.wait_until(lambda: has_ended(settings))
        for instance in instances:
            pipeline.stop(f"{instance}-again")
        pipeline.finish()
    assert_exact(settings, stream)


def epochs(settings: Settings) -> set[int]:
    """Those of the plans under which tuples have been routed."""
    frames = (
        decode_frame(message.value(), fingerprint=settings.fingerprint)
        for message in records(settings, "routed")
    )
    return {frame.header.epoch for frame in frames if frame.batch.num_rows}
