"""Two live drivers of one stage: the older one stands still within a micro-batch, and the newer one takes
over.

Rule "one writer per stage".
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import FencedError, ServiceError
from evenflow.settings import KafkaSettings
from spark_consumers.application import run
from spark_consumers.checkpoints.epoch import Holder, StageEpoch, newest_holder
from spark_consumers.checkpoints.folders import Folder
from spark_consumers.checkpoints.result_files import ResultFiles
from spark_consumers.checkpoints.run_folder import LocalFiles, StoredFiles, take_along
from spark_consumers.checkpoints.runs import run_name
from spark_consumers.session import make_session
from tests.ground.waiting import wait_until
from tests.pipeline.end_to_end import batch_is_running
from tests.pipeline.spark_stream import (
    SLOW,
    Stream,
    consumed,
    driver,
    expected_rows,
    make_settings,
    results,
    run_folder,
    run_until,
    with_spark,
    written_rows,
)
from topics import clients
from workbench.local.broker import EmbeddedBroker

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(400)]


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder, with its size and when it was written (ns)."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    "sink",
    [
        pytest.param("kafka", marks=pytest.mark.more),
        pytest.param("frames", marks=pytest.mark.long),
        pytest.param("parquet", marks=pytest.mark.long),
    ],
)
def test_a_driver_that_is_paused_in_a_micro_batch_and_replaced_ends_fenced_and_results_are_exact(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, sink: str
) -> None:
    target = {"sink": sink, "path": str(tmp_path / "results")} if sink == "parquet" else {"sink": sink}
    settings = make_settings(kafka_settings, query_name, tmp_path, results=target)
    stream = Stream(settings)
    stream.write(8)
    log = tmp_path / "old.log"
    with driver(with_spark(settings, SLOW), log, "aggregate") as old:
        wait_until(lambda: batch_is_running(settings, "fused"), "the old driver does not begin", patience=120)
        os.killpg(old.pid, signal.SIGSTOP)
        first = run_folder(settings, "fused")
        assert batch_is_running(settings, "fused")
        run_until(settings, lambda: consumed(settings, "fused", "routed"))
        second = run_folder(settings, "fused")
        assert (first.name, second.name) == (run_name(1), run_name(2))
        before = contents(second)
        stream.write(4)  # the old driver could go on with this: it must not
        os.killpg(old.pid, signal.SIGCONT)
        assert old.wait(150) == FencedError.exit_code, log.read_text()[-3000:]
    said = log.read_text()
    assert f"another driver has taken over {query_name}.spark.fused: process {os.getpid()} on " in said
    assert contents(second) == before, "the folder of a run is written by its own driver only"
    stream.write(4)
    stream.end()
    run(settings, until_ended=True)
    result = written_rows(settings)
    assert set(result) == expected_rows(stream)
    if sink == "parquet":
        assert max(result.values()) == 1


@pytest.mark.more
def test_a_second_aggregate_beside_a_live_one_takes_over_in_words_on_both_sides_and_results_are_exact(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    target = {"sink": "parquet", "path": str(tmp_path / "results")}
    settings = make_settings(kafka_settings, query_name, tmp_path, results=target)
    stream = Stream(settings)
    stream.write(4)
    logs = tmp_path / "first.log", tmp_path / "second.log"
    with driver(settings, logs[0], "aggregate") as first:
        wait_until(lambda: consumed(settings, "fused", "routed"), "the first does not begin", patience=150)
        with driver(settings, logs[1], "aggregate", "--until-ended") as second:
            assert first.wait(150) == FencedError.exit_code, logs[0].read_text()[-3000:]
            stream.write(4)
            stream.end()
            assert second.wait(150) == 0, logs[1].read_text()[-3000:]
    said = [log.read_text() for log in logs]
    assert f"another driver has taken over {query_name}.spark.fused: process {second.pid} on " in said[0]
    assert f"{query_name}.spark.fused: the driver before was process {first.pid} on " in said[1]
    assert f"it ends now with status {FencedError.exit_code}" in said[1]
    for noise in ("Traceback", "Python Proxy", "Py4J", "chmod"):
        assert [noise in text for text in said] == [False, False]
    result = written_rows(settings)
    assert set(result) == expected_rows(stream)
    assert max(result.values()) == 1


@pytest.mark.long
def test_a_combiner_that_is_paused_in_a_micro_batch_and_replaced_repeats_equal_segments_only(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, spark={"wiring": "split"})
    stream = Stream(settings)
    stream.write(8)
    log = tmp_path / "old.log"
    with driver(with_spark(settings, SLOW), log, "combine") as old:
        wait_until(
            lambda: batch_is_running(settings, "combine"), "the old driver does not begin", patience=120
        )
        os.killpg(old.pid, signal.SIGSTOP)
        stream.write(8)
        run_until(settings, lambda: consumed(settings, "combine", "routed"), ("combine",))
        os.killpg(old.pid, signal.SIGCONT)
        assert old.wait(150) == FencedError.exit_code, log.read_text()[-3000:]
    assert f"another driver has taken over {query_name}.spark.combine" in log.read_text()
    stream.end()
    run(settings, until_ended=True)
    assert results(settings)[0] == stream.expected()


@pytest.mark.long
def test_a_driver_that_stands_still_between_its_files_and_their_publication_publishes_none_of_them(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = {"sink": "parquet", "path": str(tmp_path / "results")}
    settings = make_settings(kafka_settings, query_name, tmp_path, results=target)
    stream = Stream(settings)
    stream.write(8)
    stream.end()
    stands, goes_on = threading.Event(), threading.Event()
    publish: Callable[..., None] = ResultFiles.publish

    def latched(self: ResultFiles, *words: Any) -> None:
        stands.set()
        assert goes_on.wait(300)
        publish(self, *words)

    monkeypatch.setattr(ResultFiles, "publish", latched)
    seen: list[dict[str, tuple[int, int]]] = []

    def replace() -> None:
        try:
            wait_until(stands.is_set, "the old driver publishes nothing", patience=120)
            with driver(settings, tmp_path / "new.log", "aggregate", "--until-ended") as new:
                if new.wait(200) == 0:
                    seen.append(contents(tmp_path / "results"))
        finally:
            goes_on.set()

    thread = threading.Thread(target=replace)
    thread.start()
    with pytest.raises(FencedError, match="another driver has taken over"):
        run(settings, until_ended=True)
    thread.join()
    assert seen, (tmp_path / "new.log").read_text()[-3000:]
    assert contents(tmp_path / "results") == seen[0], "it has published nothing"
    result = written_rows(settings)
    assert set(result) == expected_rows(stream)
    assert max(result.values()) == 1


def test_a_place_that_hadoop_reaches_is_taken_along_as_a_folder_of_this_machine_is(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    for name in (
        "metadata",
        "commits/0",
        "offsets/0",
        "offsets/1",
        "state/0/1/1.zip",
        "state/0/1/SSTs/a.sst",
    ):
        (tmp_path / run_name(1) / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / run_name(1) / name).write_text(name)
    spark = make_session(make_settings(kafka_settings, query_name, tmp_path))
    try:
        stored = StoredFiles(Folder(spark, str(tmp_path)))
        assert stored.listed("none") == []
        assert not stored.take(f"{run_name(1)}/none", "none")
        take_along(stored, run_name(1), run_name(2))
    finally:
        spark.stop()
    take_along(LocalFiles(tmp_path), run_name(1), run_name(3))

    def texts(epoch: int) -> dict[str, str]:
        top = tmp_path / run_name(epoch)
        files = (path for path in top.rglob("*") if path.is_file() and path.suffix != ".crc")
        return {str(path.relative_to(top)): path.read_text() for path in files}

    assert texts(3) == texts(2) == texts(1)


def test_a_newer_epoch_fences_the_older_one_at_its_next_check(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "evenflow.spark")
    settings = make_settings(kafka_settings, query_name, tmp_path)
    assert newest_holder(settings, "fused") is None
    old, other = StageEpoch(settings, "fused"), StageEpoch(settings, "combine")
    old.check()
    assert "the driver before" not in caplog.text
    new = StageEpoch(settings, "fused", above=0)
    assert (
        f"the driver before was {old.holder.who} (epoch 1). If it is still at work, it ends now"
        in caplog.text
    )
    assert (old.number, new.number, other.number) == (1, 2, 1)
    for _ in range(2):
        with pytest.raises(
            FencedError, match=r"another driver has taken over .*\.spark\.fused: process \d+ on "
        ) as fenced:
            old.check()
    assert "Two drivers" in str(fenced.value.hint)
    new.check()
    other.check()
    assert newest_holder(settings, "fused") == new.holder
    assert StageEpoch(settings, "fused", above=40).number == 41, (
        "folders may know more than a topic that was made anew"
    )
    for epoch in (old, new, other):
        epoch.close()


def test_an_epoch_that_0_1_0_has_written_counts(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path)
    before = Holder(epoch=7, who="a driver of 0.1.0")
    client = clients.producer(kafka_settings)
    client.produce(settings.topic("snapshots"), key=f"spark/epoch/{query_name}/fused", value=before.encode())
    clients.flush(client, kafka_settings)
    assert newest_holder(settings, "fused") == before
    epoch = StageEpoch(settings, "fused")
    assert epoch.number == 8
    assert newest_holder(settings, "fused") == epoch.holder
    epoch.close()


@pytest.mark.long
def test_a_broker_that_is_away_says_nothing_about_another_driver_and_the_epoch_outlives_it(
    query_name: str, tmp_path: Path
) -> None:
    with EmbeddedBroker() as broker:
        kafka = broker.settings().model_copy(update={"request_timeout": 3_000})
        settings = make_settings(kafka, query_name, tmp_path)
        epoch = StageEpoch(settings, "fused")
        broker.kill()
        with pytest.raises(ServiceError):
            epoch.check()
        broker.restart()
        wait_until(lambda: _checks(epoch), "the epoch cannot be checked", patience=30)
        assert newest_holder(settings, "fused") == epoch.holder
        epoch.close()


def _checks(epoch: StageEpoch) -> bool:
    try:
        epoch.check()
    except ServiceError:
        return False
    return True
