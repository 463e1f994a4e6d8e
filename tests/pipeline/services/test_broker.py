import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evenflow.errors import ConfigError, ServiceError
from tests.patience import PATIENCE, wait_for
from topics.admin import describe, ensure_topics
from topics.clients import flush, producer
from topics.reader import read_range
from topics.state import TopicSpec
from workbench.local.broker import EmbeddedBroker

pytestmark = pytest.mark.pipeline

ROOT = Path(__file__).parents[3]
TIMEOUT = 30.0 * PATIENCE
SHORT_SESSION = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300"}
"""A crashed broker may register again when its session has expired: 9 s by default, right for busy
machines.
"""
OWNER = """
import signal, sys
from pathlib import Path
from workbench.local.broker import EmbeddedBroker
broker = EmbeddedBroker(data_dir=Path(sys.argv[1])).start()
print(broker.pid, broker.bootstrap_servers, flush=True)
signal.pause()
"""


def wait_until(condition: Callable[[], bool], what: str) -> None:
    wait_for(condition, lambda: what, timeout=30.0)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def write(broker: EmbeddedBroker, topic: str, *values: bytes) -> None:
    kafka = broker.settings()
    ensure_topics(kafka, [TopicSpec(topic, 1, {})])
    client = producer(kafka)
    for value in values:
        client.produce(topic, value)
    flush(client, kafka)


def read(broker: EmbeddedBroker, topic: str) -> list[bytes]:
    return [message.value() for batch in read_range(broker.settings(), topic) for message in batch]


def test_a_clean_stop_leaves_no_process_no_port_and_no_folder() -> None:
    with EmbeddedBroker() as broker:
        pid, port, folder = broker.pid, broker.port, broker.data_dir
        assert pid is not None
        assert listens(port)
    assert not runs(pid)
    assert not listens(port)
    assert not folder.exists()
    assert not broker.alive


def test_data_survives_a_stop_and_another_port(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        write(broker, "kept", b"one", b"two")
        topic_id = describe(broker.settings(), ["kept"])["kept"].topic_id
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        assert read(broker, "kept") == [b"one", b"two"]
        assert describe(broker.settings(), ["kept"])["kept"].topic_id == topic_id


@pytest.mark.more
def test_data_survives_a_crash_on_the_same_port() -> None:
    with EmbeddedBroker(properties=SHORT_SESSION) as broker:
        write(broker, "kept", b"one")
        port = broker.port
        broker.kill()
        assert not broker.alive
        broker.restart()
        assert broker.port == port
        assert read(broker, "kept") == [b"one"]


@pytest.mark.more
def test_a_broken_earlier_run_is_cleaned_up(tmp_path: Path) -> None:
    """Its owner is killed with SIGKILL: the JVM goes too, and the folder with its stale lock is usable at
    once.
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert owner.stdout is not None
    with owner.stdout:
        pid = int(owner.stdout.readline().split()[0])
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    with EmbeddedBroker(data_dir=tmp_path, properties=SHORT_SESSION) as broker:
        assert not runs(pid)
        write(broker, "works", b"x")
        assert read(broker, "works") == [b"x"]


@pytest.mark.more
def test_temporary_folders_of_killed_runs_are_swept_and_live_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = tmp_path / "evenflow-broker-dead"
    dead.mkdir()
    (dead / "broker.lock").write_text("999999999\n")
    os.utime(dead / "broker.lock", (0, 0))
    with EmbeddedBroker() as live:
        os.utime(live.data_dir / "broker.lock", (0, 0))
        with EmbeddedBroker() as other:
            assert live.data_dir.is_dir()
            assert other.data_dir.is_dir()
        assert not dead.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.more
def test_a_run_that_broke_while_formatting_is_formatted_again(tmp_path: Path) -> None:
    (tmp_path / "kafka.formatting").mkdir()
    (tmp_path / "kafka.formatting" / "meta.properties").write_text("version=1\n")
    (tmp_path / "broker.lock").write_text("999999999\n")
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        write(broker, "works", b"x")
    assert not (tmp_path / "kafka.formatting").exists()


def test_a_folder_in_use_is_refused_and_its_broker_goes_on(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        with pytest.raises(ServiceError, match=f"in use by a live broker of process {os.getpid()}"):
            EmbeddedBroker(data_dir=tmp_path).start()
        write(broker, "works", b"x")


def test_a_taken_port_is_a_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        broker = EmbeddedBroker(port=taken.getsockname()[1])
        with pytest.raises(ServiceError, match="another process has port"):
            broker.start()
    assert not broker.alive
    assert not broker.data_dir.exists()


def test_a_broker_that_cannot_start_shows_its_log() -> None:
    broker = EmbeddedBroker(properties={"num.io.threads": "none"})
    with pytest.raises(ServiceError, match=r"num\.io\.threads"):
        broker.start()
    assert not broker.data_dir.exists()


def test_the_super_user_must_be_a_user() -> None:
    with pytest.raises(ConfigError, match="none of the users"):
        EmbeddedBroker(sasl={"ann": "x"})


def test_every_codec_and_a_record_of_30_mb_go_through(kafka_broker: EmbeddedBroker, query_name: str) -> None:
    kafka = kafka_broker.settings()
    ensure_topics(kafka, [TopicSpec(query_name, 1, {"max.message.bytes": "33554432"})])
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        client = producer(kafka, compression_type=codec)
        client.produce(query_name, codec.encode() * 1000)
        flush(client, kafka)
    client = producer(kafka, compression_type="none")
    client.produce(query_name, bytes(30_000_000))
    flush(client, kafka)
    values = read(kafka_broker, query_name)
    assert values[:-1] == [codec.encode() * 1000 for codec in codecs]
    assert len(values[-1]) == 30_000_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_its_address_and_stops_on_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cli.main", "broker", "--port", "0", "--data-dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    port = int(address.removeprefix("127.0.0.1:"))
    assert listens(port)
    process.send_signal(number)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, errors.strip()) == (0, "stopped")
    assert not listens(port)
    assert (tmp_path / "kafka" / "meta.properties").exists()
    wait_until(lambda: not listens(port), "the port is free")


@pytest.mark.long
def test_a_broker_survives_many_crashes_without_losing_an_acknowledged_record(tmp_path: Path) -> None:
    expected: list[bytes] = []
    with EmbeddedBroker(data_dir=tmp_path, properties=SHORT_SESSION) as broker:
        for number in range(5):
            expected.append(b"%d" % number)
            write(broker, "kept", expected[-1])
            broker.kill()
            broker.restart()
            assert read(broker, "kept") == expected
