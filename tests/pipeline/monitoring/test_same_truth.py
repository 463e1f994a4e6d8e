"""What is dead, hangs or is gone: `evenflow status`, the live page, `/healthy/` and the log say it alike."""

from __future__ import annotations

import json
import os
import shutil
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from tests.pages import page
from tests.patience import wait_for
from tests.pipeline.end_to_end import Pipeline, Stream, batches_done, make_settings
from topics.admin import delete_topics
from workbench.local.broker import EmbeddedBroker
from workbench.local.ports import free_ports

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(400)]

SPARK_IS_SILENT = "; is `evenflow aggregate` running?"


def status(pipeline: Pipeline) -> tuple[int, list[str]]:
    """Exit status, and what is wrong in words."""
    said = CliRunner().invoke(app, ["--config", str(pipeline.file), "status", "--json"])
    return said.exit_code, json.loads(said.stdout)["wrong"]


def keeping_up(port: int) -> dict[str, str]:
    """The first answer of the live page."""
    return dict(page(port, "/live/state/")[1]["verdicts"]["keeping up"])


@pytest.mark.more
def test_a_spark_application_that_hangs_or_is_killed_is_wrong_in_status_and_on_the_live_page(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    live, own = free_ports(2)
    settings = make_settings(
        kafka_settings, query_name, tmp_path, partitioner={"web_port": live}, spark={"web_port": own}
    )
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition")
        spark = pipeline.start("aggregate")
        stream.write(2_000, poison=False)

        def works() -> bool:
            code, wrong = status(pipeline)
            return code < 2 and not [line for line in wrong if "park" in line]

        def silent(*names: str) -> bool:
            code, wrong = status(pipeline)
            text = keeping_up(live)["text"]
            return code == 2 and any(SPARK_IS_SILENT in line for line in wrong) and "spark fused" in text

        pipeline.wait_until(lambda: batches_done(settings, "fused") and works(), timeout=180)
        pipeline.wait_until(lambda: page(own, "/healthy/")[0] == 200)
        keeping_up(live)  # the first look makes the page follow
        os.killpg(spark.pid, signal.SIGSTOP)
        pipeline.wait_until(silent)
        os.killpg(spark.pid, signal.SIGCONT)
        pipeline.wait_until(works)
        pipeline.kill("aggregate")
        pipeline.wait_until(silent)
        assert keeping_up(live)["word"] == "bad"


@pytest.mark.more
def test_a_broker_that_is_gone_is_named_by_all_and_the_application_still_stops_when_told_to(
    query_name: str, tmp_path: Path
) -> None:
    live, own = free_ports(2)
    with EmbeddedBroker() as broker:
        settings = make_settings(
            broker.settings(), query_name, tmp_path, partitioner={"web_port": live}, spark={"web_port": own}
        )
        stream = Stream(settings)
        with Pipeline(settings, tmp_path) as pipeline:
            pipeline.start("partition")
            spark = pipeline.start("aggregate")
            stream.write(500, poison=False)
            pipeline.wait_until(lambda: batches_done(settings, "fused"), timeout=180)
            pipeline.wait_until(lambda: page(live, "/healthy/")[0] == 200)
            # The first look makes the page follow, and later ones show what it has read.
            pipeline.wait_until(lambda: keeping_up(live)["word"] != "unknown")
            broker.kill()
            gone = f"Kafka at {settings.kafka.bootstrap_servers} has not answered for"

            def named() -> bool:
                code, said = page(live, "/healthy/")
                return code == 503 and said["reason"].startswith(gone) and no_kafka(keeping_up(live))

            def no_kafka(verdict: dict[str, str]) -> bool:
                # Silence of all parts, or the page's own client that reaches no broker: whichever is noticed
                # first.
                silent = verdict["word"] == "bad" and "does Kafka answer?" in verdict["text"]
                return silent or settings.kafka.bootstrap_servers in verdict["text"]

            wait_for(named, lambda: (page(live, "/healthy/"), keeping_up(live)), timeout=90.0)
            assert page(live, "/alive/")[0] == 200
            pipeline.kill("partition")
            pipeline.wait_until(lambda: gone in spark.output())
            code, said = page(own, "/healthy/")
            assert (code, said["reason"].startswith(gone)) == (503, True)
            assert page(own, "/alive/")[0] == 200, "no restart brings a broker back"
            assert "raise spark.max_frames_per_batch" not in spark.output()
            said_of_status = CliRunner().invoke(app, ["--config", str(pipeline.file), "status"])
            error = said_of_status.exception
            assert isinstance(error, ServiceError), error
            assert error.message.startswith("no broker answers")
            os.kill(spark.pid, signal.SIGTERM)
            wait_for(lambda: not spark.alive, spark.output, timeout=20.0)
            del pipeline.running["aggregate"]


@pytest.mark.parametrize(
    "sink", [pytest.param("kafka", marks=pytest.mark.more), pytest.param("parquet", marks=pytest.mark.long)]
)
def test_results_that_are_deleted_are_named_by_status_and_end_the_application_in_words(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, sink: str
) -> None:
    live, own = free_ports(2)
    folder = tmp_path / "results"
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        partitioner={"web_port": live},
        spark={"web_port": own},
        results={"sink": sink} | ({"path": str(folder)} if sink == "parquet" else {}),
    )
    stream, results = Stream(settings), settings.topic("results")
    lost = {
        "kafka": f"{results} was deleted while the service ran",
        "parquet": f"results.path {folder} has lost its _evenflow.json while the application ran",
    }[sink]
    named_as = {"kafka": f"{results} is gone", "parquet": f"results.path {folder} is not there"}[sink]
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition")
        spark = pipeline.start("aggregate")
        stream.write(2_000, poison=False)
        pipeline.wait_until(lambda: batches_done(settings, "fused"), timeout=180)
        pipeline.wait_until(lambda: page(own, "/healthy/")[0] == 200)
        keeping_up(live)  # the first look makes the page follow
        if sink == "kafka":
            delete_topics(settings.kafka, [results])
        else:
            shutil.rmtree(folder)

        def named() -> bool:
            code, wrong = status(pipeline)
            return code == 2 and any(named_as in line for line in wrong)

        if sink == "parquet":
            assert named(), "at once"

        def shown() -> bool:
            answer = keeping_up(live)
            is_bad = answer["word"] == "bad" and answer["text"].startswith("spark fused has ended: ")
            return is_bad and lost in answer["text"]

        wait_for(shown, lambda: keeping_up(live), timeout=15.0)  # although no record comes
        pipeline.wait_until(named)
        wait_for(lambda: not spark.alive, spark.output, timeout=90.0)
        del pipeline.running["aggregate"]
        assert lost in spark.output()
        with pytest.raises(urllib.error.URLError):
            page(own, "/healthy/")
        assert shown(), "and it stays so"
        assert status(pipeline)[0] == 2
