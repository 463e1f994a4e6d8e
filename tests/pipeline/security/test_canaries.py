"""A pipeline that logs in with a canary: nothing that the services print, write or send holds it."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from evenflow.settings import Settings
from evenflow.settings.sections.kafka import KafkaExtras
from tests.pipeline.end_to_end import Pipeline, Stream, assert_exact, make_settings
from topics.admin import describe, pipeline_topics
from topics.reader import read_range
from workbench.local.broker import EmbeddedBroker

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


def test_a_password_stands_in_no_command_line_log_checkpoint_topic_or_status(
    query_name: str, tmp_path: Path
) -> None:
    with EmbeddedBroker(sasl={"admin": CANARY}) as broker:
        kafka = broker.settings().model_copy(update={"extras": EXTRAS})
        spark = {"conf": {"spark.hadoop.fs.s3a.secret.key": CANARY}}
        settings = make_settings(kafka, query_name, tmp_path, spark=spark)
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
        assert not [word for word in words if CANARY in word]
        assert (tmp_path / "status.log").read_text().count(query_name)
        files = [file for file in tmp_path.rglob("*") if file.is_file() and file != pipeline.file]
        assert {"partition.log", "aggregate.log"} <= {file.name for file in files}
        assert not [file for file in files if CANARY.encode() in file.read_bytes()]
        assert_exact(stream)
        _assert_no_topic_holds_it(settings)


def _assert_no_topic_holds_it(settings: Settings) -> None:
    names = [spec.name for spec in pipeline_topics(settings).values()]
    for name, state in describe(settings.kafka, names).items():
        if state is None or not state.records:
            continue
        for batch in read_range(settings.kafka, name):
            for record in batch:
                whole = f"{record.key()!r} {record.value()!r} {record.headers()!r}"
                assert CANARY not in whole, name
