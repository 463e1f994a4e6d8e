"""What the Spark scenarios share: a routed topic that the partitioner service has filled, and the timing of a
stream.

Time is the sum of the micro-batches' own durations as Spark reports them. The start of the session and of the
query is outside, and so is the Python workers' first import, because one stream that does not count runs
first. CPU time is that of the whole stream, including its start and stop.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.pipelines import measured_broker
from benchmarks.measuring.spread import Speed
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import settings_for, write_input
from evenflow.settings import KafkaSettings, Settings
from evenflow.wire import decode_frame
from partitioner_service.plane.data_plane import DataPlane
from topics.reader import read_range

WORKERS = 8
D_CHOICES: Mapping[str, Any] = {"name": "d-choices"}
FOLDER = "evenflow-bench-"


@contextmanager
def routed_stream(
    name: str, *, tuples: int, zipf: float = 1.0, window: str = "60s", **spark: Any
) -> Iterator[tuple[Settings, Path, CpuMeter]]:
    """Settings, a folder and a meter. The routed topic holds the stream as the partitioner writes it
    (d-choices).
    """
    with measured_broker("driver") as (broker, meter), tempfile.TemporaryDirectory(prefix=FOLDER) as folder:
        settings = routed(
            broker.settings(), name, Path(folder), tuples=tuples, zipf=zipf, window=window, **spark
        )
        yield settings, Path(folder), meter


def routed(
    kafka: KafkaSettings,
    name: str,
    folder: Path,
    *,
    tuples: int,
    zipf: float = 1.0,
    window: str = "60s",
    partitioner: Mapping[str, Any] = D_CHOICES,
    **spark: Any,
) -> Settings:
    """Settings of a query whose routed topic holds the stream as its partitioner writes it.

    folder: for the checkpoint. partitioner, spark: settings of these parts.
    """
    settings = settings_for(
        kafka,
        name,
        query={"window": window},
        input={"topic": f"{name}.input"},
        partitioner={"workers": WORKERS, **partitioner},
        spark={"checkpoint": f"{folder}/checkpoint", "batch_interval": 0, **spark},
    )
    with step(f"writing and routing {tuples:,} tuples"):
        write_input(settings, tuples=tuples, zipf=zipf)
        DataPlane(settings, until_ended=True).run()
    return settings


def frames_and_tuples(settings: Settings) -> tuple[int, int]:
    """Numbers of frames in the routed topic and of tuples in these frames."""
    frames = tuples = 0
    for messages in read_range(settings.kafka, settings.topic("routed")):
        for message in messages:
            frames += 1
            tuples += decode_frame(message.value(), fingerprint=settings.fingerprint).batch.num_rows
    return frames, tuples


def stream_speed(frame: DataFrame, folder: Path, meter: CpuMeter, *, rows: int, tuples: int) -> Speed:
    """Speed of a stream that reads the whole topic (`rows` records with `tuples` tuples) into a sink that
    drops all.
    """
    began = meter.now()
    with tempfile.TemporaryDirectory(dir=folder) as checkpoint:
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = [batch for batch in query.recentProgress if batch["numInputRows"]]
    read = sum(batch["numInputRows"] for batch in batches)
    assert read == rows, f"{read} records of {rows} were read"
    seconds = sum(batch["durationMs"]["triggerExecution"] for batch in batches) / 1000
    return Speed(tuples / seconds, tuples, meter.between(began, meter.now()))
