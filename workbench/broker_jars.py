"""The jars of the embedded broker. `python -m workbench.broker_jars` fetches them, as `make setup` does."""

from __future__ import annotations

import sys
from pathlib import Path

from evenflow.errors import ConfigError, ServiceError
from spark_consumers.jars import SCALA_VERSION, resolve, tell

KAFKA_VERSION = "4.1.0"
_SLF4J_VERSION = "1.7.36"


def kafka_broker_jars() -> list[Path]:
    """Jars of a complete Kafka broker, with a logger that writes to standard error."""
    logger = f"org.slf4j:slf4j-simple:{_SLF4J_VERSION}"
    return resolve("org.apache.kafka", f"kafka_{SCALA_VERSION}", KAFKA_VERSION, logger)


def main() -> int:
    """Fetch the jars, and say where they are. Returns the exit status."""
    try:
        tell("broker", kafka_broker_jars())
    except (ServiceError, ConfigError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
