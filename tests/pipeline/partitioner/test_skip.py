"""Batches that cannot be fetched: they are noticed as what they are, and an operator's order goes past
them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import ConfigError, ServiceError
from evenflow.settings import KafkaSettings, Settings
from evenflow.settings.kafka import librdkafka_config
from partitioner_service.begin.prepare import prepare
from partitioner_service.begin.run_note import RunNote
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.kafka.side_records import SideRecords
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.reports.health import Health
from tests.pipeline.planes import start_thread, telemetry, total, wait_until
from tests.pipeline.routed import create_topics, make_settings, records, write, write_end
from topics.batches.batch_extent import bad_batch
from topics.query.audit import read_entries
from topics.reader import read_range
from workbench.assist.status.judging import wrong
from workbench.assist.status.read import read
from workbench.lifetime.skipping import skip
from workbench.local.broker import EmbeddedBroker
from workbench.verify.shell import verify

pytestmark = [pytest.mark.family, pytest.mark.usefixtures("either_reading")]

PARTS: dict[str, Any] = {"input": {"partitions": 2}, "partitioner": {"name": "hashing"}}


def row(at: int) -> dict[str, Any]:
    return {"k": f"key{at % 7}", "t": at * 10, "v": 1}


def bomb(settings: Settings, *, count: int, codec: str = "zstd") -> None:
    """One batch in partition 0 that grows from a few KB to `count` MB. Of zstd the consumer decompresses
    less than 160.
    """
    client = Producer(
        librdkafka_config(settings.kafka)
        | {
            "compression.type": codec,
            "message.max.bytes": 1_000_000_000,
            "batch.size": 1_000_000_000,
            "linger.ms": 3_000,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    offsets: list[int | None] = []
    for _ in range(count):
        client.produce(
            settings.topic("input"),
            b"0" * 1_000_000,
            partition=0,
            on_delivery=lambda _, m: offsets.append(m.offset()),
        )
    client.flush(60)
    assert len(offsets) == count


@contextmanager
def running(settings: Settings) -> Iterator[DataPlane]:
    """An instance that runs until the input has ended, or until the block is left."""
    plane = DataPlane(prepare(settings), until_ended=True)
    thread, errors = start_thread(plane)
    try:
        yield plane
    finally:
        plane.stop()
        thread.join(60)
        assert not errors


def damage(folder: Path, settings: Settings, partition: int) -> None:
    """Change a byte in the second batch of this partition of the input, on the disk of a broker that is
    down.
    """
    (log,) = folder.glob(f"**/{settings.topic('input')}-{partition}/*.log")
    data = bytearray(log.read_bytes())
    second = 12 + int.from_bytes(data[8:12], "big")
    data[second + 70] ^= 0xFF
    log.write_bytes(data)


def stuck(plane: DataPlane) -> list[dict[str, Any]]:
    return [one for one in plane.status().get("standing_still", ()) if one["what"] == "unfetchable"]


@pytest.mark.more
def test_a_decompression_bomb_is_named_and_an_order_goes_past_it(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = make_settings(kafka_settings, query_name, **PARTS)
    create_topics(settings)
    write(settings, [(at % 2, row(at)) for at in range(100)], end=False)
    bomb(settings, count=160)
    write(settings, [(at % 2, row(at)) for at in range(100, 200)], end=False)
    write_end(settings, {0: 260, 1: 100})  # type: ignore[arg-type]
    topic, where = settings.topic("input"), ["--config", str(_file(settings, tmp_path))]
    with running(settings) as plane:
        wait_until(lambda: stuck(plane))
        (seen,) = stuck(plane)
        assert (seen["partition"], seen["offset"]) == (0, 50)
        assert "offset 50 of input partition 0 cannot be fetched: Decompression" in seen["reason"]
        page = Health().healthy(plane.status(), control_joined=True)
        assert (page["healthy"], page["reason"]) == (False, seen["reason"])
        assert f"{topic}[0] cannot be read on at offset 50" in caplog.text
        wait_until(lambda: plane.status()["assignment"]["1"]["ended"])
        wait_until(lambda: any(said.stuck for said in telemetry(settings)))
        wait_until(lambda: total(all_states(settings))[0] == 150)
        assert any("offset 50 of partition 0 cannot be fetched" in said for said in wrong(read(settings)))
        with pytest.raises(ServiceError, match=r"offset 50 of .* cannot be fetched"):
            list(read_range(settings.kafka, topic))

        result = bad_batch(settings.kafka, topic, 0, 50, end=261)
        assert result is not None
        assert (result.first, result.last) == (50, 209)
        for partition, offset, through, why in (
            (1, 100, None, "offset 100 .* is behind us|can be read"),
            (0, 10, None, "is behind us: everything below 50"),
            (0, 230, None, "can be read"),
            (0, 50, None, "ends at offset 209"),
            (0, 50, 220, "ends at offset 209"),
            (0, 5_000, None, "no offset 5000 yet"),
            (7, 0, None, "no partition 7"),
        ):
            with pytest.raises(ConfigError, match=why):
                skip(settings, partition, offset, because="a test", through=through)
        assert records(settings, "rejected") == []
        other = skip(settings, 0, 60, because="not where it stands", through=209, patience=20)
        assert (other.done, "stuck at offset 50" in other.words) == (False, True)

        said = CliRunner().invoke(
            app, [*where, "skip", "0", "50", "--through", "209", "--because", "a bomb", "--json"]
        )
        assert (said.exit_code, json.loads(said.stdout)["skipped"]) == (0, 160), said.output
        wait_until(lambda: plane.status()["state"] == "stopped")
    assert total(all_states(settings)) == (360, 200, 160)
    (rejected,) = records(settings, "rejected")
    headers = dict(rejected.headers() or ())
    assert (rejected.key(), rejected.value()) == (None, None)
    assert headers["evenflow-reason"] == b"skipped"
    assert headers["evenflow-source"] == f"{topic}:0:50".encode()
    assert headers["evenflow-through"] == b"209"
    assert str(headers["evenflow-detail"]).endswith(": a bomb'")
    report = verify(settings, due_within=0)
    assert set(report.kinds) <= {"missing", "behind", "blind"}, report.text()
    assert (report.read, report.routed, report.rejected) == (360, 200, 160)
    assert [(one.partition, one.first, one.last) for one in report.skipped] == [(0, 50, 209)]
    assert "offsets 50 to 209 of input partition 0 could not be fetched" in report.text()


@pytest.mark.more
@pytest.mark.parametrize(
    "codec", ["gzip", *(pytest.param(name, marks=pytest.mark.long) for name in ("lz4", "snappy"))]
)
def test_a_decompression_bomb_of_another_codec_is_read_and_its_records_are_rejected(
    kafka_settings: KafkaSettings, query_name: str, codec: str
) -> None:
    settings = make_settings(kafka_settings, query_name, **PARTS)
    create_topics(settings)
    write(settings, [(at % 2, row(at)) for at in range(100)], end=False)
    bomb(settings, count=80, codec=codec)
    write(settings, [(at % 2, row(at)) for at in range(100, 200)], end=False)
    write_end(settings, {0: 180, 1: 100})  # type: ignore[arg-type]
    with running(settings) as plane:
        wait_until(lambda: plane.status()["state"] == "stopped")
    assert total(all_states(settings)) == (280, 200, 80)
    assert {dict(one.headers() or ())["evenflow-reason"] for one in records(settings, "rejected")} == {
        b"unreadable"
    }


@pytest.mark.more
@pytest.mark.parametrize("codec", ["gzip", pytest.param("lz4", marks=pytest.mark.long)])
def test_a_bomb_that_killed_an_instance_is_not_fetched_again_and_an_order_goes_past_it(
    kafka_settings: KafkaSettings,
    query_name: str,
    tmp_path: Path,
    codec: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = make_settings(kafka_settings, query_name, **PARTS)
    create_topics(settings)
    write(settings, [(at % 2, row(at)) for at in range(100)], end=False)
    with running(settings):
        wait_until(lambda: total(all_states(settings))[0] == 100)
    # Before the bomb stand records of several batches, one of them aborted.
    write(settings, [(0, row(at)) for at in range(100, 110)], end=False)
    aborted(settings, b'{"k": "nobody", "t": 1, "v": 1}')
    write(settings, [(0, row(at)) for at in range(110, 120)], end=False)
    bomb(settings, count=160, codec=codec)
    write(settings, [(at % 2, row(at)) for at in range(120, 220)], end=False)
    killed_once(settings)
    write_end(settings, {0: 50 + 20 + 160 + 50, 1: 100})  # type: ignore[arg-type]
    topic, first, last = settings.topic("input"), 72, 231
    with running(settings) as plane:
        wait_until(lambda: stuck(plane))
        (seen,) = stuck(plane)
        assert (seen["partition"], seen["offset"]) == (0, first)
        assert f"Decompression bomb ({codec})" in seen["reason"]
        assert not Health().healthy(plane.status(), control_joined=True)["healthy"]
        assert f"{topic}[0] will be read to offset {first}, and no further" in caplog.text
        wait_until(lambda: plane.status()["assignment"]["1"]["ended"])
        wait_until(lambda: total(all_states(settings))[0] == 170)
    caplog.clear()
    with running(settings) as plane:  # it ended in order, and knows all the same
        wait_until(lambda: stuck(plane))
        assert f"{topic}[0] will be read to offset {first}, and no further" in caplog.text
        assert plane.status()["rebalances"] == 1
        with pytest.raises(ConfigError, match=f"ends at offset {last}"):
            skip(settings, 0, first, because="a test")
        outcome = skip(settings, 0, first, because="a bomb", through=last)
        assert outcome.done, outcome.words
        wait_until(lambda: plane.status()["state"] == "stopped")
    assert total(all_states(settings)) == (380, 220, 160)
    report = verify(settings, due_within=0)
    assert set(report.kinds) <= {"missing", "behind", "blind"}, report.text()
    assert [(one.partition, one.first, one.last) for one in report.skipped] == [(0, first, last)]


def aborted(settings: Settings, value: bytes) -> None:
    """A record in partition 0 of a transaction that is aborted: it takes an offset, and so does the end of
    it.
    """
    client = Producer(librdkafka_config(settings.kafka) | {"transactional.id": settings.query.name})
    client.init_transactions(30)
    client.begin_transaction()
    client.produce(settings.topic("input"), value, partition=0)
    client.flush(30)
    client.abort_transaction(30)


def killed_once(settings: Settings) -> None:
    """Leave what an instance leaves that was killed before it committed anything."""
    side = SideRecords(settings)
    try:
        RunNote(settings, side).begins({p: state.offset for p, state in all_states(settings).items()})
    finally:
        side.close()


@pytest.mark.more
def test_nothing_behind_a_damaged_batch_is_read_before_an_order_goes_past_it(
    query_name: str, tmp_path: Path
) -> None:
    with EmbeddedBroker(data_dir=tmp_path / "broker") as broker:
        settings = make_settings(broker.settings(), query_name, input={"partitions": 1})
        create_topics(settings)
        for first in (0, 10, 20):
            write(settings, [(0, row(at)) for at in range(first, first + 10)], end=False)
        write_end(settings, {0: 30})  # type: ignore[arg-type]
        broker.stop()
        damage(tmp_path / "broker", settings, 0)
        broker.start()
        settings = make_settings(broker.settings(), query_name, input={"partitions": 1})
        with running(settings) as plane:
            wait_until(lambda: stuck(plane))
            wait_until(lambda: total(all_states(settings))[0] == 10)
            threading.Event().wait(2)  # librdkafka goes on behind such a batch by itself
            assert total(all_states(settings)) == (10, 10, 0)
            outcome = skip(settings, 0, 10, because="a damaged disk", through=19)
            assert outcome.done, outcome.words
            entries = [written.entry for written in read_entries(settings)[0]]
            assert [entry.because for entry in entries] == ["a damaged disk"] * 2
            assert entries[1].what.startswith("partition 0, offsets 10 to 19: done: ")
            wait_until(lambda: plane.status()["state"] == "stopped")
        assert total(all_states(settings)) == (30, 20, 10)
        report = verify(settings, due_within=0)
        assert set(report.kinds) <= {"missing", "behind", "blind"}, report.text()


@pytest.mark.more
def test_a_bounded_read_that_ends_before_a_damaged_batch_is_not_troubled_by_it(
    query_name: str, tmp_path: Path
) -> None:
    """Behind such a batch librdkafka takes records for headers, and most often asks for an offset that is
    gone.

    What it asks for depends on the bytes, so there are many partitions.
    """
    parts = {"partitions": 30}
    with EmbeddedBroker(data_dir=tmp_path / "broker") as broker:
        settings = make_settings(broker.settings(), query_name, input=parts)
        create_topics(settings)
        for first in (0, 10, 20):
            write(settings, [(at, row(first + at + i)) for at in range(30) for i in range(10)], end=False)
        broker.stop()
        for partition in range(30):
            damage(tmp_path / "broker", settings, partition)
        broker.start()
        kafka, topic = broker.settings(), settings.topic("input")
        ends = dict.fromkeys(range(30), 10)
        for one in range(30):
            begin = {other: 0 if other == one else 10 for other in range(30)}
            assert sum(map(len, read_range(kafka, topic, begin=begin, end=ends))) == 10
        assert sum(map(len, read_range(kafka, topic, end=ends))) == 300
        assert sum(map(len, read_range(kafka, topic, begin=dict.fromkeys(range(30), 20)))) == 300
        with pytest.raises(ServiceError, match=r"offset 10 of .* cannot be fetched"):
            list(read_range(kafka, topic, begin=dict.fromkeys(range(30), 9)))


def _file(settings: Settings, tmp_path: Path) -> Path:
    """The settings as a file for the command line."""
    query = settings.query
    lines = [
        "[query]", f'name = "{query.name}"', 'key = "k"', 'time = "t"', 'window = "4s"', 'slide = "1s"',
        'types = { v = "int64" }', 'aggregates = { n = "count", s = "sum(v)" }',
        "[input]", "partitions = 2",
        "[kafka]", f'bootstrap_servers = "{settings.kafka.bootstrap_servers}"',
        "[partitioner]", "workers = 3", 'name = "hashing"',
    ]  # fmt: skip
    path = tmp_path / "evenflow.toml"
    path.write_text("\n".join(lines) + "\n")
    return path
