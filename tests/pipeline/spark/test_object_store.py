"""Checkpoints in an object store (S3), whose API is on loopback: the application is killed, the store goes
away.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow import fs

from evenflow.aggregates import AggregatePlan
from evenflow.errors import FencedError
from evenflow.settings import Settings
from evenflow.settings.delta_place import delta_place
from evenflow.twostep import readable, readable_schema
from spark_consumers.jars.fetch import s3_jars
from spark_consumers.sinks import SINKS
from spark_consumers.sinks.base import Start
from spark_consumers.sinks.checking import sample_rows, settings_for
from spark_consumers.sinks.delta import commit, delta_schema
from tests.ground.waiting import wait_until
from tests.pipeline import spark_stream
from tests.pipeline.end_to_end import Pipeline, Stream, assert_exact, committed, make_settings
from tests.pipeline.object_store import BUCKET, ENVIRONMENT, ObjectStore, object_store
from tests.pipeline.spark_stream import SLOW, driver, expected_rows, with_spark, written_rows
from workbench.assist.status.checkpoint import stages
from workbench.lifetime.remains import find
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(400)]


_IMPATIENT = {"spark.hadoop.fs.s3a.retry.limit": "2", "spark.hadoop.fs.s3a.attempts.maximum": "2"}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    s3_jars()  # fetched once, which takes longer than a start may
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with object_store() as store:
        yield store


def _spark(store: ObjectStore, **more: Any) -> dict[str, Any]:
    return {"checkpoint": f"s3a://{BUCKET}/evenflow", "conf": store.conf, "batch_interval": 500} | more


@pytest.mark.long
def test_an_application_whose_checkpoint_is_in_an_object_store_is_killed_in_mid_stream_and_goes_on_exactly(
    kafka_settings: Any, query_name: str, tmp_path: Path, store: ObjectStore
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, spark=_spark(store))
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition")
        pipeline.start("aggregate")
        stream.write(1_500)
        pipeline.wait_until(lambda: store.names(settings, "fused", "commits"), timeout=200)
        stream.write(1_500)
        pipeline.wait_until(lambda: _batch_is_running(store, settings), timeout=200)
        pipeline.kill("aggregate")
        done = len(store.names(settings, "fused", "commits"))
        pipeline.start("aggregate")
        stream.write(500)
        pipeline.wait_until(lambda: len(store.names(settings, "fused", "commits")) > done, timeout=200)
        pipeline.stop("partition")
        pipeline.stop("aggregate", grace=60)
        stream.end()
        pipeline.run_to_the_end(until=200)
    assert_exact(stream)
    assert not [path for path in tmp_path.rglob("*") if path.name in ("commits", "offsets", "state")]
    assert any(name.endswith(".changelog") for name in store.names(settings, "fused", "state"))
    (folder,) = find(settings, results=False).folders
    assert folder.files > 10
    folder.at.remove()
    assert not find(settings, results=False).folders


def _batch_is_running(store: ObjectStore, settings: Settings) -> bool:
    return len(store.names(settings, "fused", "offsets")) > len(store.names(settings, "fused", "commits"))


def _batches(settings: Settings) -> int:
    """Micro-batches that are done, as `evenflow status` has it, wherever the checkpoint is."""
    return sum(stage.batches for stage in stages(settings))


@pytest.mark.long
@pytest.mark.parametrize("sink", ["kafka", "frames", "parquet", "delta"])
def test_a_driver_whose_checkpoint_is_in_a_store_is_paused_in_a_micro_batch_and_replaced_exactly(
    kafka_settings: Any, query_name: str, tmp_path: Path, store: ObjectStore, sink: str
) -> None:
    in_kafka = sink in ("kafka", "frames")
    target = {"sink": sink} | ({} if in_kafka else {"path": f"s3a://{BUCKET}/results"})
    settings = spark_stream.make_settings(
        kafka_settings, query_name, tmp_path, spark=_spark(store), results=target
    )
    stream = spark_stream.Stream(settings)
    stream.write(8)
    log = tmp_path / "old.log"
    with driver(with_spark(settings, SLOW), log, "aggregate") as old:
        wait_until(lambda: _batch_is_running(store, settings), "the old driver does not begin", patience=150)
        os.killpg(old.pid, signal.SIGSTOP)
        assert _batch_is_running(store, settings)
        stream.write(4)
        with driver(settings, tmp_path / "new.log", "aggregate") as new:
            wait_until(
                lambda: len(store.names(settings, "fused", "commits")) >= 1, "nothing is done", patience=150
            )
            before = _newest(store, settings)
            new.send_signal(signal.SIGTERM)
            assert new.wait(60) == 0, (tmp_path / "new.log").read_text()[-3000:]
        assert before == "run-000002"
        os.killpg(old.pid, signal.SIGCONT)
        assert old.wait(200) == FencedError.exit_code, log.read_text()[-3000:]
    assert f"another driver has taken over {query_name}.spark.fused" in log.read_text()
    stream.end()
    with driver(settings, tmp_path / "last.log", "aggregate", "--until-ended") as last:
        assert last.wait(200) == 0, (tmp_path / "last.log").read_text()[-3000:]
    if sink == "kafka":
        assert spark_stream.results(settings)[0] == stream.expected()
        return
    if sink == "frames":
        assert set(written_rows(settings)) == expected_rows(stream)
        return
    if sink == "delta":
        place = delta_place(settings)
        files = DeltaTable(place.uri, storage_options=place.options).to_pyarrow_table()
    else:
        files = pq.read_table(f"{BUCKET}/results", filesystem=store.files())
    starts = files["window_start"].cast("timestamp[ms]").cast("int64").to_pylist()
    rows = Counter(zip(starts, files["key"].to_pylist(), files["n"].to_pylist(), strict=True))
    assert set(rows) == expected_rows(stream)
    assert max(rows.values()) == 1


@pytest.mark.long
def test_a_delta_table_in_an_object_store_has_each_row_once_although_the_application_is_killed_in_mid_stream(
    kafka_settings: Any, query_name: str, tmp_path: Path, store: ObjectStore
) -> None:
    results = {"sink": "delta", "path": f"s3a://{BUCKET}/table"}
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        spark={"conf": store.conf, "batch_interval": 500},
        results=results,
    )
    stream = Stream(settings)
    place = delta_place(settings)

    def commits() -> int:
        known = DeltaTable.is_deltatable(place.uri, storage_options=place.options)
        return DeltaTable(place.uri, storage_options=place.options).version() if known else -1

    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition")
        pipeline.start("aggregate")
        stream.write(1_500)
        pipeline.wait_until(lambda: commits() > 0, timeout=200)
        pipeline.kill("aggregate")
        before = commits()
        pipeline.start("aggregate")
        stream.write(1_500)
        pipeline.wait_until(lambda: commits() > before, timeout=200)
        pipeline.stop("partition")
        pipeline.stop("aggregate", grace=60)
        stream.end()
        pipeline.run_to_the_end(until=200)
    report = verify(settings)
    assert report.exact, report.text()
    assert report.rows > 0
    table = DeltaTable(place.uri, storage_options=place.options).to_pyarrow_table(
        columns=["window_start", "key"]
    )
    assert table.num_rows == table.group_by(["window_start", "key"]).aggregate([]).num_rows


def test_of_drivers_that_commit_the_same_micro_batches_in_an_object_store_at_the_same_time_one_does_it(
    store: ObjectStore,
) -> None:
    sink = SINKS["delta"]
    known = settings_for(sink, path=f"s3a://{BUCKET}/raced")
    settings = known.model_copy(update={"spark": known.spark.model_copy(update={"conf": store.conf})})
    place = delta_place(settings)
    nowhere: Any = None  # making the table asks no Spark
    sink.writer(settings, Start(spark=nowhere, run="ours", epoch=1))
    rows = sample_rows(AggregatePlan.of(settings.query), 1_000)
    table = readable(rows, readable_schema(settings.query)).cast(delta_schema(settings))
    with ThreadPoolExecutor(4) as drivers:
        for number in range(6):
            for done in [drivers.submit(commit, place, "ours", table, number) for _ in range(4)]:
                done.result()
    before = sink.position(settings)
    commit(place, "ours", table, 6)
    assert sink.read_back(settings, after=before).read_all().num_rows == table.num_rows
    assert sink.read_back(settings, until=before).read_all().num_rows == 6 * table.num_rows
    assert DeltaTable(place.uri, storage_options=place.options).version() == 7


def _newest(store: ObjectStore, settings: Settings) -> str:
    place = f"{settings.query_checkpoint.removeprefix('s3a://')}/fused"
    return max(one.base_name for one in store.files().get_file_info(fs.FileSelector(place)))


@pytest.mark.long
def test_a_store_that_goes_away_in_mid_stream_ends_the_application_clearly_and_costs_nothing_but_time(
    kafka_settings: Any, query_name: str, tmp_path: Path, store: ObjectStore
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        spark=_spark(store, conf=store.conf | _IMPATIENT, wiring="split"),
    )
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition")
        pipeline.start("combine")
        pipeline.start("reduce")
        stream.write(1_500)
        pipeline.wait_until(lambda: store.names(settings, "reduce", "commits"), timeout=200)
        store.stop()
        stream.write(1_500)
        for name in ("combine", "reduce"):
            service = pipeline.running.pop(name)
            assert service.wait(200) == 2
            assert "the object store does not answer as it should" in service.output()
            assert "is spark.hadoop.fs.s3a.endpoint in [spark.conf] right?" in service.output()
        store.start()
        stream.end()
        pipeline.stop("partition")
        for name in ("partition", "combine", "reduce"):
            pipeline.start(name, "--until-ended")
        pipeline.finish(timeout=250)
    assert_exact(stream)


@pytest.mark.long
def test_a_missing_bucket_and_refused_credentials_are_told_before_anything_is_read(
    kafka_settings: Any, query_name: str, tmp_path: Path, store: ObjectStore
) -> None:
    elsewhere = _spark(store, checkpoint="s3a://no-such-bucket/evenflow")
    with Pipeline(make_settings(kafka_settings, query_name, tmp_path, spark=elsewhere), tmp_path) as pipeline:
        service = pipeline.start("aggregate")
        assert service.wait(200) == 2
        assert "s3a://no-such-bucket/evenflow/" in service.output()
        assert "the bucket does not exist" in service.output()
        pipeline.running.clear()
    settings = make_settings(kafka_settings, query_name, tmp_path, spark=_spark(store))
    with Pipeline(settings, tmp_path) as pipeline, store.refusing():
        service = pipeline.start("aggregate", name="refused")
        assert service.wait(200) == 2
        assert "the object store refuses these credentials" in service.output()
        assert "AWS_ACCESS_KEY_ID" in service.output()
        pipeline.running.clear()


@pytest.mark.long
def test_a_checkpoint_is_moved_to_another_folder_and_into_an_object_store_and_goes_on_exactly(
    kafka_settings: Any, query_name: str, tmp_path: Path, store: ObjectStore
) -> None:
    first = make_settings(kafka_settings, query_name, tmp_path)
    second = with_spark(first, {"checkpoint": str(tmp_path / "another" / "folder")})
    third = with_spark(first, _spark(store))
    stream = Stream(first)
    for settings in (first, second, third):
        with Pipeline(settings, tmp_path) as pipeline:
            done = _batches(settings)
            assert done or settings is first, "nothing was taken along"
            pipeline.start("partition")
            pipeline.start("aggregate")
            stream.write(1_500)
            tuples = len(stream.records)
            pipeline.wait_until(lambda tuples=tuples: committed(first) >= tuples, timeout=200)  # type: ignore[misc]
            pipeline.wait_until(lambda settings=settings, done=done: _batches(settings) > done, timeout=200)  # type: ignore[misc]
            pipeline.stop("partition")
            pipeline.stop("aggregate", grace=60)
        if settings is first:
            shutil.move(first.spark.checkpoint_folder, second.spark.checkpoint_folder)
        elif settings is second:
            store.upload(Path(second.spark.checkpoint_folder), third)
            shutil.rmtree(second.spark.checkpoint_folder)
    stream.end()
    with Pipeline(third, tmp_path) as pipeline:
        pipeline.run_to_the_end(until=250)
    assert_exact(stream)
    assert not (tmp_path / "checkpoint").exists()
    assert not (tmp_path / "another" / "folder").exists()
