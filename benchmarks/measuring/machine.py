"""Facts of the machine that figures depend on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from functools import cache
from importlib.metadata import version

from evenflow.errors import EvenflowError
from evenflow.simulation.provenance import commit, cores, cpu_model
from spark_consumers.jars.fetch import java_command
from workbench.local.broker_jars import kafka_broker_jars

_PACKAGES = ("evenflow", "numpy", "numba", "pyarrow", "confluent-kafka", "pyspark", "pandas")


def machine() -> dict[str, object]:
    """Facts that never change, and the load of the last minute. A busy machine makes low figures."""
    return {**_lasting(), "load_average": round(os.getloadavg()[0], 2)}


@cache
def _lasting() -> dict[str, object]:
    return {
        "cores": cores(),
        "cpu": cpu_model(),
        "commit": commit(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": _java(),
        "kafka": _kafka(),
        "packages": {name: version(name) for name in _PACKAGES},
    }


def _java() -> str | None:
    try:
        process = subprocess.run([java_command(), "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError, EvenflowError):
        return None
    version = re.search(r'version "([^"]+)"', process.stderr)
    return version[1] if version else None


def _kafka() -> str | None:
    for jar in kafka_broker_jars():
        match = re.match(r"kafka_[\d.]+-(\d+\.\d+\.\d+)\.jar", jar.name)
        if match:
            return match[1]
    return None
