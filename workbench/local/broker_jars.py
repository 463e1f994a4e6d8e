"""The jars of the embedded broker.
`python -m workbench.local.broker_jars` fetches them, as `make setup` does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from spark_consumers.jars.fetch import LZ4, OLD_LZ4, SCALA_VERSION, fetch, resolve

KAFKA_VERSION = "4.1.0"
_SLF4J_VERSION = "1.7.36"


def kafka_broker_jars() -> list[Path]:
    """Jars of a complete Kafka broker, with a logger that writes to standard error."""
    logger = f"org.slf4j:slf4j-simple:{_SLF4J_VERSION}"
    name = f"kafka_{SCALA_VERSION}"
    return resolve("org.apache.kafka", name, KAFKA_VERSION, logger, LZ4, without=(OLD_LZ4,))


if __name__ == "__main__":
    sys.exit(fetch(["broker"], {"broker": kafka_broker_jars}))
