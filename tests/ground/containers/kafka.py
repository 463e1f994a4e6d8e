"""A Kafka image made on this machine, that testcontainers' KafkaContainer takes:
`KafkaContainer(name).with_kraft()`.

Its jars are those of the embedded broker, which `make setup` fetches.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.ground.containers.bases import java_base
from tests.ground.containers.building import build
from tests.ground.containers.engine import Engine
from workbench.local.broker_jars import KAFKA_VERSION, kafka_broker_jars

# KafkaContainer wants a tag of the Confluent Platform: 8.1 is the one that holds Kafka 4.1.
KAFKA = f"evenflow-test/kafka:8.{KAFKA_VERSION.partition('.')[2]}"


def kafka_image(engine: Engine) -> str:
    """Build `KAFKA`, from cached layers where there are some; returns its name."""
    with tempfile.TemporaryDirectory(prefix="evenflow-kafka-image-") as work:
        context = Path(work) / "context"
        shutil.copytree(Path(__file__).parents[1] / "images" / "kafka", context)
        (context / "libs").mkdir()
        for jar in kafka_broker_jars():
            shutil.copy2(jar, context / "libs")
        return build(engine, context, KAFKA, arguments={"BASE": java_base(engine)})
