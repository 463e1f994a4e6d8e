"""A pipeline that logs in with a canary: nothing that the services print, write or send holds it."""

from __future__ import annotations

import base64
import io
import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import psutil
import pytest
import trustme

from evenflow.settings import Settings
from evenflow.settings.loading import save_settings
from evenflow.settings.sections.kafka import KafkaExtras
from tests.pipeline.end_to_end import Pipeline, Stream, assert_exact, make_settings
from tests.pipeline.results.test_avro_results import read
from tests.schema_registry import schema_registry
from topics.admin import describe, pipeline_topics
from topics.reader import read_range
from workbench.local.broker import EmbeddedBroker
from workbench.local.ports import free_ports

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280), pytest.mark.more]
CANARY = "canary-7f3a"
REGISTRIES = {"input": f"{CANARY}-of-the-input", "results": f"{CANARY}-of-the-results"}
"""Section of the settings -> the password of its schema registry."""
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "t", "type": "long"},
        {"name": "i", "type": ["null", "long"]},
        {"name": "f", "type": ["null", "double"]},
        {"name": "g", "type": ["null", "double"]},
    ],
}
EXTRAS = KafkaExtras(librdkafka={"ssl.key.password": CANARY}, java={"ssl.key.password": CANARY})


class Onlooker(threading.Thread):
    """Reads the words that processes below this one were started with, as every user of the machine can."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.words: set[str] = set()
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.wait(0.1):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    self.words.update(process.cmdline())

    def end(self) -> set[str]:
        self._end.set()
        self.join()
        return self.words


class AvroStream(Stream):
    """A stream whose values are Avro by the first schema of the registry."""

    def encoded(self, row: dict[str, Any]) -> bytes:
        value = io.BytesIO(b"\0" + (1).to_bytes(4, "big"))
        value.seek(0, io.SEEK_END)
        fastavro.schemaless_writer(value, SCHEMA, row)
        return value.getvalue()


def log_in(section: str) -> str:
    """What a client of the registry of this section sends as its name and password."""
    return base64.b64encode(f"me:{REGISTRIES[section]}".encode()).decode()


def registries(url: str) -> dict[str, dict[str, Any]]:
    """The sections of the settings that name a registry."""
    places = {
        section: {"url": url, "username": "me", "password": password}
        for section, password in REGISTRIES.items()
    }
    return {
        "input": {"format": "avro", "registry": places["input"]},
        "results": {"sink": "avro", "registry": places["results"]},
    }


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings of the pages, whose token and key are in files beside the folder of the test."""
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "token").write_text(f"{CANARY}-of-the-pages\n")
    identity = trustme.CA().issue_cert("127.0.0.1", "localhost")
    identity.private_key_pem.write_to_path(folder / "key.pem")
    identity.cert_chain_pems[0].write_to_path(folder / "chain.pem")
    return {
        "token_file": str(folder / "token"),
        "tls_key": str(folder / "key.pem"),
        "tls_certificate": str(folder / "chain.pem"),
    }


def test_a_secret_stands_in_no_command_line_log_checkpoint_topic_or_status(
    query_name: str, tmp_path: Path, web: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{CANARY}-of-the-store")
    # A PEM file's second line is the first one of the key itself.
    secrets = (CANARY, Path(web["tls_key"]).read_text().splitlines()[1], *map(log_in, REGISTRIES))
    with EmbeddedBroker(sasl={"admin": CANARY}) as broker, schema_registry() as registry:
        kafka = broker.settings().model_copy(update={"extras": EXTRAS})
        live, own = free_ports(2)
        parts = {
            "partitioner": {"web_port": live},
            "spark": {"web_port": own, "conf": {"spark.hadoop.fs.s3a.secret.key": CANARY}},
        }
        registry.register(json.dumps(SCHEMA), subject="rows")
        settings = make_settings(kafka, query_name, tmp_path, web=web, **parts, **registries(registry.url))
        stream = AvroStream(settings)
        stream.write(1_000)
        stream.end()
        onlooker = Onlooker()
        onlooker.start()
        registry.failures = 3
        with Pipeline(settings, tmp_path) as pipeline:
            pipeline.file.unlink()
            pipeline.file = tmp_path / "evenflow.json"
            save_settings(settings, pipeline.file)
            pipeline.start("partition", "--until-ended")
            pipeline.wait_until(lambda: not registry.failures)
            pipeline.start("aggregate", "--until-ended", "--verbose")
            pipeline.finish()
            pipeline.start("verify")
            pipeline.finish()
            pipeline.start("status", "--json")
            pipeline.running.pop("status").wait(120)
            asked_as = {headers["Authorization"] for headers in registry.headers}
            assert asked_as == {f"Basic {log_in(section)}" for section in REGISTRIES}
            registry.status = 401
            pipeline.start("doctor")
            pipeline.running.pop("doctor").wait(120)
            registry.status = 200
        words = onlooker.end()
        assert any("spark" in word for word in words)
        assert not [word for word in words for secret in secrets if secret in word]
        assert (tmp_path / "status.log").read_text().count(query_name)
        assert registry.url in (tmp_path / "doctor.log").read_text()
        files = [file for file in tmp_path.rglob("*") if file.is_file() and file != pipeline.file]
        logs = {f"{command}.log" for command in ("partition", "aggregate", "verify", "doctor")}
        assert logs <= {file.name for file in files}
        for file in files:
            assert not [secret for secret in secrets if secret.encode() in file.read_bytes()], file
        assert_exact(stream, read(settings, registry)[0])
        _assert_no_topic_holds_one(settings, secrets)


def _assert_no_topic_holds_one(settings: Settings, secrets: tuple[str, ...]) -> None:
    names = [spec.name for spec in pipeline_topics(settings).values()]
    for name, state in describe(settings.kafka, names).items():
        if state is None or not state.records:
            continue
        for batch in read_range(settings.kafka, name):
            for record in batch:
                whole = f"{record.key()!r} {record.value()!r} {record.headers()!r}"
                assert not [secret for secret in secrets if secret in whole], name
