"""The jars of the embedded broker.
`python -m workbench.local.broker_jars` fetches them, as `make setup` does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from spark_consumers.jars.fetch import SCALA_VERSION, fetch, resolve

KAFKA_VERSION = "4.1.0"
_SLF4J_VERSION = "1.7.36"


def kafka_broker_jars() -> list[Path]:
    """Jars of a complete Kafka broker, with a logger that writes to standard error."""
    logger = f"org.slf4j:slf4j-simple:{_SLF4J_VERSION}"
    return resolve("org.apache.kafka", f"kafka_{SCALA_VERSION}", KAFKA_VERSION, logger)


if __name__ == "__main__":
    sys.exit(fetch(["broker"], {"broker": kafka_broker_jars}))
