"""What is wrong on this machine or with the topics of a query, and what to do about it.

Each check is a function of plain values that returns findings. `examine` collects the values and calls them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from evenflow.errors import EvenflowError
from evenflow.settings import Settings
from spark_consumers.jars.fetch import cache_dir, java_command
from topics.certificates import SOON_SECONDS, certificate_ends
from workbench.assist.doctor.ports import check_ports
from workbench.assist.doctor.topics import DoctorReport, with_topics
from workbench.assist.findings import Finding
from workbench.assist.sample_check.sample import SAMPLE

JAVA_MAJOR = 17
_MIN_PYTHON = (3, 11)
_MIN_MEMORY = 4 * 2**30
_MIN_DISK = 5 * 2**30


def examine(settings: Settings, *, most: int = SAMPLE) -> DoctorReport:
    """All checks against this machine, the broker of the settings,
    and at most `most` records of the input topic.
    """
    mine = [*_machine(settings), *check_certificates(settings), *check_ports(settings)]
    return with_topics(mine, settings, most=most)


def _machine(settings: Settings) -> list[Finding]:
    return [
        check_python(sys.version_info[:3]),
        check_java(_java_report()),
        *check_packages(_pinned("evenflow"), installed_version),
        check_connector(settings.spark.conf, installed_version("pyspark")),
        check_cache(cache_dir()),
        check_memory(_total_memory()),
        check_disk(shutil.disk_usage(tempfile.gettempdir()).free, Path(tempfile.gettempdir())),
    ]


def check_python(python_version: tuple[int, ...]) -> Finding:
    """Python must be 3.11 or newer. python_version: of this process."""
    text = ".".join(map(str, python_version))
    if python_version[:2] < _MIN_PYTHON:
        return Finding(
            "python", "problem", f"Python {text} is too old", "install Python 3.11, then `make setup`"
        )
    return Finding("python", "ok", f"Python {text}")


def check_java(report: str | None) -> Finding:
    """Java must be of the tested major version. report: what `java -version` prints.
    None if there is no Java.
    """
    if report is None:
        return Finding("java", "problem", "there is no Java", "install a Java 17 runtime, or set JAVA_HOME")
    major = java_major(report)
    if major is None:
        return Finding("java", "problem", "`java -version` says nothing known", "set JAVA_HOME to a Java 17")
    if major != JAVA_MAJOR:
        do = f"set JAVA_HOME to a Java {JAVA_MAJOR}: Spark 4.0 and the broker are tested with that"
        return Finding("java", "problem", f"Java {major} is not Java {JAVA_MAJOR}", do)
    return Finding("java", "ok", f"Java {major}")


def java_major(report: str) -> int | None:
    """Major version from what `java -version` prints: 17 of "17.0.15", 8 of "1.8.0_402".
    None if it names none.
    """
    match = re.search(r'version "(\d+)(?:\.(\d+))?', report)
    if match is None:
        return None
    return int(match[2]) if match[1] == "1" and match[2] else int(match[1])


def check_packages(pins: Mapping[str, str], installed: Callable[[str], str | None]) -> Iterator[Finding]:
    """Packages that evenflow pins exactly must be installed in that version.

    pins: package -> version. installed: returns the installed version of a package, None if there is none.
    """

    for name, pin in sorted(pins.items()):
        actual = installed(name)
        if actual == pin:
            yield Finding(name, "ok", f"{name} {actual}")
        else:
            message = f"{name} is missing" if actual is None else f"{name} {actual} instead of {pin}"
            yield Finding(name, "problem", message, f"pip install {name}=={pin} (or `make setup`)")


def check_connector(spark_conf: Mapping[str, str], pyspark: str | None) -> Finding:
    """A Kafka connector that spark.conf names must match pyspark.
    The connector that evenflow adds always does.
    """
    named = re.findall(r"spark-sql-kafka-0-10_[\d.]+:([\w.-]+)", spark_conf.get("spark.jars.packages", ""))
    wrong = [connector for connector in named if connector != pyspark]
    if wrong:
        do = f"remove it from spark.conf, or name version {pyspark}"
        return Finding("connector", "problem", f"Kafka connector {wrong[0]} with pyspark {pyspark}", do)
    return Finding("connector", "ok", f"Kafka connector of pyspark {pyspark}")


def check_cache(folder: Path) -> Finding:
    """The cache folder must be writable. It is made if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        do = "set XDG_CACHE_HOME to a folder that can be written"
        return Finding("cache", "problem", f"{folder} cannot be written: {error.strerror}", do)
    return Finding("cache", "ok", f"{folder} can be written")


def check_memory(total: int | None) -> Finding:
    """Broker, Spark and Python workers together need 4 GiB.
    total: memory of the machine in bytes, None if unknown.
    """
    if total is None:
        return Finding("memory", "warning", "the size of the memory is unknown")
    size = f"{total / 2**30:.1f} GiB of memory"
    if total < _MIN_MEMORY:
        return Finding("memory", "warning", size, "lower spark.driver_memory, use fewer workers")
    return Finding("memory", "ok", size)


def check_disk(free: int, folder: Path) -> Finding:
    """There must be room in the temporary folder for brokers and checkpoints. free: bytes."""
    size = f"{free / 2**30:.1f} GiB free in {folder}"
    if free < _MIN_DISK:
        return Finding("disk", "warning", size, "free some, or set TMPDIR to a larger disk")
    return Finding("disk", "ok", size)


def check_certificates(settings: Settings, *, now: Callable[[], float] = time.time) -> Iterator[Finding]:
    """Certificates that the settings name must not end within two weeks. now: seconds since 1970."""
    moment = now()
    for certificate in certificate_ends(settings):
        ended, soon = certificate.end <= moment, certificate.end - moment < SOON_SECONDS
        do = (
            "replace the file, and restart what uses it:"
            " docs/operations/alerts.md#evenflowcertificateendssoon"
        )
        yield Finding(
            "certificate",
            "problem" if ended else "warning" if soon else "ok",
            certificate.left(moment),
            do if soon else "",
        )


def installed_version(package: str) -> str | None:
    """Version of an installed package. None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def pins_of(requirements: Iterable[str]) -> dict[str, str]:
    """Package -> version that requirements pin exactly: 'pyspark==4.0.0;
    extra == "spark"' gives {"pyspark": "4.0.0"}.
    """
    matches = (re.match(r"([A-Za-z0-9._-]+)\s*==\s*([\w.]+)", text) for text in requirements)
    return {match[1]: match[2] for match in matches if match is not None}


def _pinned(package: str) -> dict[str, str]:
    try:
        return pins_of(requires(package) or [])
    except PackageNotFoundError:
        return {}


def _java_report() -> str | None:
    try:
        done = subprocess.run([java_command(), "-version"], capture_output=True, text=True, timeout=30)
    except (EvenflowError, OSError, subprocess.TimeoutExpired):
        return None
    return done.stderr + done.stdout  # Java writes its version to standard error


def _total_memory() -> int | None:
    try:
        import psutil
    except ImportError:
        return None
    return int(psutil.virtual_memory().total)
