"""What is wrong on this machine or with the topics of a query, and what to do about it.

Each check is a function of plain values that returns findings; `examine` collects the values and calls them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from evenflow.errors import EvenflowError, ServiceError
from evenflow.settings import KafkaSettings, Settings
from evenflow.settings.durations import format_duration
from spark_consumers.jars import cache_dir, java_command
from spark_consumers.sinks import SINKS, sink_of
from topics.admin import TopicSpec, TopicState, check_topic, describe, input_topic, may_write, pipeline_topics

Status = Literal["ok", "warning", "problem"]
JAVA_MAJOR = 17
_MIN_PYTHON = (3, 11)
_MIN_MEMORY = 4 * 2**30
_MIN_DISK = 5 * 2**30
_PATIENCE_MS = 5_000


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report: what was found, and what to do (empty if nothing)."""

    name: str
    status: Status
    what: str
    do: str = ""


def examine(settings: Settings) -> list[Finding]:
    """All checks against this machine and the broker of the settings."""
    return [
        check_python(sys.version_info[:3]),
        check_java(_java_report()),
        *check_packages(_pinned("evenflow"), installed_version),
        check_connector(settings.spark.conf, installed_version("pyspark")),
        check_cache(cache_dir()),
        check_memory(_total_memory()),
        check_disk(shutil.disk_usage(tempfile.gettempdir()).free, Path(tempfile.gettempdir())),
        *_broker_findings(settings),
    ]


def check_python(found: tuple[int, ...]) -> Finding:
    """Python 3.11 or newer."""
    text = ".".join(map(str, found))
    if found[:2] < _MIN_PYTHON:
        return Finding(
            "python", "problem", f"Python {text} is too old", "install Python 3.11, then `make setup`"
        )
    return Finding("python", "ok", f"Python {text}")


def check_java(report: str | None) -> Finding:
    """`report` is what `java -version` prints; None: there is no java."""
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
    """Major version from `java -version`: 17 of "17.0.15", 8 of "1.8.0_402"; None if there is none."""
    match = re.search(r'version "(\d+)(?:\.(\d+))?', report)
    if match is None:
        return None
    return int(match[2]) if match[1] == "1" and match[2] else int(match[1])


def check_packages(pins: Mapping[str, str], installed: Callable[[str], str | None]) -> Iterator[Finding]:
    """Packages that evenflow pins exactly must be there in just that version."""

    for name, wanted in sorted(pins.items()):
        found = installed(name)
        if found == wanted:
            yield Finding(name, "ok", f"{name} {found}")
        else:
            what = f"{name} is missing" if found is None else f"{name} {found} instead of {wanted}"
            yield Finding(name, "problem", what, f"pip install {name}=={wanted} (or `make setup`)")


def check_connector(spark_conf: Mapping[str, str], pyspark: str | None) -> Finding:
    """A connector named by hand in spark.conf must match pyspark; ours does by construction."""
    named = re.findall(r"spark-sql-kafka-0-10_[\d.]+:([\w.-]+)", spark_conf.get("spark.jars.packages", ""))
    wrong = [one for one in named if one != pyspark]
    if wrong:
        do = f"remove it from spark.conf, or name version {pyspark}"
        return Finding("connector", "problem", f"Kafka connector {wrong[0]} with pyspark {pyspark}", do)
    return Finding("connector", "ok", f"Kafka connector of pyspark {pyspark}")


def check_cache(folder: Path) -> Finding:
    """The cache folder (or the first parent that exists) must be writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        do = "set XDG_CACHE_HOME to a folder that can be written"
        return Finding("cache", "problem", f"{folder} cannot be written: {error.strerror}", do)
    return Finding("cache", "ok", f"{folder} can be written")


def check_memory(total: int | None) -> Finding:
    """Broker, Spark and Python workers together want 4 GiB."""
    if total is None:
        return Finding("memory", "warning", "the size of the memory is unknown")
    size = f"{total / 2**30:.1f} GiB of memory"
    if total < _MIN_MEMORY:
        return Finding("memory", "warning", size, "lower spark.driver_memory, use fewer workers")
    return Finding("memory", "ok", size)


def check_disk(free: int, folder: Path) -> Finding:
    """Temporary brokers and checkpoints live in the temporary folder."""
    size = f"{free / 2**30:.1f} GiB free in {folder}"
    if free < _MIN_DISK:
        return Finding("disk", "warning", size, "free some, or set TMPDIR to a larger disk")
    return Finding("disk", "ok", size)


def used_topics(settings: Settings) -> dict[str, TopicSpec]:
    """The topics by role that these settings write or read: a sink or wiring may need fewer."""
    unused = {role for sink in SINKS.values() for role in sink.topics} - sink_of(settings).topics
    if settings.spark.wiring == "fused":
        unused.add("partials")
    return {role: spec for role, spec in pipeline_topics(_counted(settings)).items() if role not in unused}


def _counted(settings: Settings) -> Settings:
    """With the number of partitions that the input topic would be made with, unless it is known."""
    if settings.input.partitions is not None:
        return settings
    return settings.with_input_partitions(input_topic(settings).partitions)


def check_topics(specs: Mapping[str, TopicSpec], states: Mapping[str, TopicState]) -> Iterator[Finding]:
    """Missing topics, partition counts, record limits and retention, one finding a topic."""
    for role, spec in specs.items():
        name, state = f"topic {spec.name}", states.get(spec.name)
        if state is None:
            yield Finding(name, "warning", f"missing ({role})", "the service that needs it creates it")
            continue
        try:
            check_topic(spec, state)
        except EvenflowError as error:
            yield Finding(name, "problem", error.message, error.hint or "")
            continue
        yield check_retention(role, state)


def check_retention(role: str, state: TopicState) -> Finding:
    """A finite retention counts from the record timestamp: with event time there, a replay is deleted."""
    name = f"topic {state.name}"
    retention = int(state.config.get("retention.ms", "-1"))
    deletes = "delete" in state.config.get("cleanup.policy", "delete") and retention >= 0
    event_time = state.config.get("message.timestamp.type", "CreateTime") == "CreateTime"
    if role in ("input", "rejected") and deletes and event_time:
        return Finding(
            name,
            "problem",
            f"keeps records for {format_duration(retention)} counted from their own timestamp: "
            "a replay of older data is deleted within minutes",
            f"set retention.ms=-1 (or message.timestamp.type=LogAppendTime) on {state.name}",
        )
    return Finding(name, "ok", f"{state.partitions} partitions, {state.records} offsets")


def _broker_findings(settings: Settings) -> Iterator[Finding]:
    patience = min(settings.kafka.request_timeout, _PATIENCE_MS)
    kafka = settings.kafka.model_copy(update={"request_timeout": patience})
    try:
        found = describe(kafka, [settings.topic("input")]).get(settings.topic("input"))
        if found is not None and settings.input.partitions is None:
            settings = settings.with_input_partitions(found.partitions)
        specs = used_topics(settings)
        states = describe(kafka, [spec.name for spec in specs.values()])
    except ServiceError as error:
        yield Finding("broker", "problem", error.message, error.hint or "")
        return
    yield Finding("broker", "ok", f"answers at {settings.kafka.bootstrap_servers}")
    yield from check_topics(specs, states)
    refused = [name for name in states if not _writable(kafka, name)]
    if refused:
        do = "ask for the ACL Write on them for this user"
        yield Finding("rights", "warning", f"may not write to {', '.join(sorted(refused))}", do)
    elif states:
        yield Finding("rights", "ok", "may write to every topic that exists")


def _writable(kafka: KafkaSettings, topic: str) -> bool:
    try:
        return may_write(kafka, topic)
    except ServiceError:
        return False


def installed_version(package: str) -> str | None:
    """Version of an installed package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def pins_of(requirements: Iterable[str]) -> dict[str, str]:
    """Packages that requirements pin exactly: {"pyspark": "4.0.0"} of 'pyspark==4.0.0; extra == "spark"'."""
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
    return done.stderr + done.stdout


def _total_memory() -> int | None:
    try:
        import psutil
    except ImportError:
        return None
    return int(psutil.virtual_memory().total)
