"""A pipeline that logs in with a canary: nothing that the services print, write or send holds it."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import trustme

from evenflow.settings import Settings
from evenflow.settings.sections.kafka import KafkaExtras
from tests.pipeline.end_to_end import Pipeline, Stream, assert_exact, make_settings
from topics.admin import describe, pipeline_topics
from topics.reader import read_range
from workbench.local.broker import EmbeddedBroker
from workbench.local.ports import free_ports

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280), pytest.mark.more]
CANARY = "canary-7f3a"
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
    secrets = (CANARY, Path(web["tls_key"]).read_text().splitlines()[1])
    with EmbeddedBroker(sasl={"admin": CANARY}) as broker:
        kafka = broker.settings().model_copy(update={"extras": EXTRAS})
        live, own = free_ports(2)
        parts = {
            "partitioner": {"web_port": live},
            "spark": {"web_port": own, "conf": {"spark.hadoop.fs.s3a.secret.key": CANARY}},
        }
        settings = make_settings(kafka, query_name, tmp_path, web=web, **parts)
        stream = Stream(settings)
        stream.write(1_000)
        stream.end()
        onlooker = Onlooker()
        onlooker.start()
        with Pipeline(settings, tmp_path) as pipeline:
            pipeline.start("partition", "--until-ended")
            pipeline.start("aggregate", "--until-ended", "--verbose")
            pipeline.finish()
            pipeline.start("status", "--json")
            pipeline.running.pop("status").wait(60)
        words = onlooker.end()
        assert any("spark" in word for word in words)
        assert not [word for word in words for secret in secrets if secret in word]
        assert (tmp_path / "status.log").read_text().count(query_name)
        files = [file for file in tmp_path.rglob("*") if file.is_file() and file != pipeline.file]
        assert {"partition.log", "aggregate.log"} <= {file.name for file in files}
        for file in files:
            assert not [secret for secret in secrets if secret.encode() in file.read_bytes()], file
        assert_exact(stream)
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
