"""Where a figure comes from: program, machine, stream and scenario.
JSON objects and the rows of a sweep carry it.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from evenflow.host.services import CHECKOUT, beside
from evenflow.simulation.scenario import Entrant, Scenario
from evenflow.simulation.streams import KeyedStream, kind_of

_GIT_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the tuples of a stream come from. A field is None if this kind of stream has no such thing."""

    stream: str
    """Name of the generated stream, with its settings (`kind_of`), or the file or topic as the user named
    it.
    """
    seed: int | None = None
    """Seed of a generated stream."""
    exponent: float | None = None
    """Exponent of Zipf's law in a generated stream."""
    generator_keys: int | None = None
    """Keys that the generator was asked for."""
    period_ms: int | None = None
    """Period of a generated stream, ms of event time."""
    rate: float | None = None
    """Tuples per second of event time, as asked for. None: the index of a tuple is its time in ms, or
    tuples have times.
    """
    key: str | None = None
    """Key column of a file or topic."""
    time: str | None = None
    """Event time column of a file or topic."""
    cost: str | None = None
    """Column of a file that says what a tuple costs.
    None: tuples have no costs, or the generated stream has them.
    """
    digest: str | None = None
    """Digest of the tuples of a file or topic (`KeyedStream.digest`)."""


def origin_of(
    kind: str, *, seed: int, zipf: float, keys: int, period_ms: int, rate: float | None = None
) -> Origin:
    """The origin of `generated(kind, ...)`. The exponent is None if the stream has none that can be set."""
    exponent = zipf if kind_of(kind).has_exponent else None
    return Origin(
        stream=kind, seed=seed, exponent=exponent, generator_keys=keys, period_ms=period_ms, rate=rate
    )


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """All that made the figures of one partitioner, besides
    what they say themselves (partitioner, workers, tuples).
    """

    version: str
    """Version of evenflow."""
    commit: str
    """Commit of the clone that ran, with `-dirty` behind it if tracked files were changed.
    Empty without a clone.
    """
    cpu: str
    """Model of the processor."""
    cores: int
    """Cores that the process may use."""
    stream: str
    """Name of the generated stream, with its settings (`kind_of`),
    or the file or topic as the user named it."""
    seed: int | None
    """Seed of a generated stream, None for a file or topic."""
    exponent: float | None
    """Exponent of Zipf's law in a generated stream, None without one that can be set."""
    generator_keys: int | None
    """Keys that the generator was asked for, None for a file or topic."""
    period_ms: int | None
    """Period of a generated stream, ms of event time. None for a file or topic."""
    rate: float | None
    """Tuples per second of event time, as asked for. None as in `Origin.rate`."""
    key: str | None
    """Key column of a file or topic, None for a generated stream."""
    time: str | None
    """Event time column of a file or topic, None for a generated stream."""
    cost: str | None = None
    """Column of a file that says what a tuple costs.
    None: tuples have no costs, or the generated stream has them."""
    digest: str | None
    """Digest of the tuples of a file or topic (`KeyedStream.digest`), None for a generated stream."""
    hash_seed: int
    """Seed of the hash family and of partitioners that draw random numbers."""
    sources: int
    """Number of sources that routed side by side."""
    window_ms: int | None
    """Sliding window, ms. None: figures are of the whole stream."""
    slide_ms: int
    """Slide of the window, ms."""
    warmup_slides: int | None
    """First slides that are left out of the figures, None for the default (`Scenario.warmup_slides`)."""
    batch: int | None
    """Tuples of the stream in a micro-batch. None: the tuples of a slide."""
    exchange_delay_ms: int | None
    """None if no exchange was asked for."""
    exchange_loss: float | None
    """None if no exchange was asked for."""
    options: str
    """The effective options of the partitioner, defaults included, as JSON with sorted names."""

    def as_json(self) -> dict[str, Any]:
        """The fields as plain JSON, in their order. `cost` is left out if there is none."""
        return {name: value for name, value in asdict(self).items() if name != "cost" or value is not None}


def program() -> dict[str, Any]:
    """What ran, and on which machine: the first fields of a provenance, which do not depend on the stream."""
    return {"version": evenflow_version(), "commit": commit(), "cpu": cpu_model(), "cores": cores()}


def of_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The provenance of a figure over several rows of a sweep:
    a field whose value differs is the list of its values.

    rows: each has the fields of `Provenance`. They come in the order in which the rows have them.
    """
    values = {
        field.name: list(dict.fromkeys(row[field.name] for row in rows)) for field in fields(Provenance)
    }
    if values["cost"] == [None]:
        del values["cost"]
    return {name: several[0] if len(several) == 1 else several for name, several in values.items()}


def described(origin: Origin, scenario: Scenario) -> dict[str, Any]:
    """The fields of a provenance that are known before anything runs."""
    channel = scenario.exchange
    return {
        **asdict(origin),
        "hash_seed": scenario.seed,
        "sources": scenario.sources,
        "window_ms": scenario.window_ms,
        "slide_ms": scenario.slide_ms,
        "warmup_slides": scenario.warmup_slides,
        "batch": scenario.batch,
        "exchange_delay_ms": None if channel is None else channel.delay_ms,
        "exchange_loss": None if channel is None else channel.loss,
    }


def provenance_of(origin: Origin, scenario: Scenario, who: Entrant, stream: KeyedStream) -> Provenance:
    """The provenance of this entrant's figures on this stream.
    ConfigError for an unknown partitioner or option.
    """
    effective = scenario.partitioners(who, stream)[0].options.model_dump(mode="json")
    return Provenance(
        **program(),
        options=json.dumps(effective, sort_keys=True),
        **described(origin, scenario),
    )


@cache
def evenflow_version() -> str:
    """The version of the installed evenflow. Empty if it is not installed."""
    try:
        return version("evenflow")
    except PackageNotFoundError:
        return ""


@cache
def commit(folder: Path = CHECKOUT) -> str:
    """The commit of the clone in this folder, with `-dirty` if tracked files are changed.
    Empty if there is none.
    """
    if not beside(folder) or not (folder / ".git").exists():
        return ""
    # No tag may stand in for the hash.
    words = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=_GIT_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


@cache
def cpu_model() -> str:
    """The model of the processor, or the architecture if the system does not tell the model."""
    try:
        match = re.search(
            r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        )
    except OSError:
        match = None
    return match[1].strip() if match else platform.machine()


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))
