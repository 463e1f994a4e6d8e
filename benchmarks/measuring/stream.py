"""The seeded stream that the service scenarios read: about 60 bytes of JSON a tuple, Zipf over 100,000
keys.
"""

from __future__ import annotations

from typing import Any

from evenflow.settings import KafkaSettings, Settings, load_settings
from evenflow.sources.generators import generate
from evenflow.sources.source import SourceOptions
from producers.replay import replay
from topics.admin import ensure_topics, pipeline_topics

KEYS = 100_000
SEED = 1
INPUT = "bench.input"
EVENT_RATE = 50_000
"""Tuples per second of event time, that is 50 per ms."""
_QUERY = {
    "window": "60s",
    "slide": "1s",
    "types": {"amount": "int64"},
    "aggregates": {"tuples": "count", "total": "sum(amount)"},
}


def settings_for(kafka: KafkaSettings, name: str, **parts: Any) -> Settings:
    """Settings of the query: 60 s windows sliding by 1 s, count and sum.

    All other settings have their defaults, unless `parts` says otherwise.
    """
    return load_settings(
        query=_QUERY | {"name": name} | parts.pop("query", {}),
        kafka=kafka.model_dump(exclude_unset=True),
        input={"topic": INPUT, "partitions": 4} | parts.pop("input", {}),
        **parts,
    )


def source_words(*, tuples: int | str, zipf: float = 1.0, start: int | None = None) -> str:
    """The generator's options as `evenflow replay` takes them. The values are so long that a record has
    about 60 bytes.
    """
    words = f"z={zipf},keys={KEYS},tuples={tuples},rate={EVENT_RATE},seed={SEED},values=1000000000000"
    return words if start is None else f"{words},start={start}"


def write_input(
    settings: Settings, *, tuples: int, zipf: float = 1.0, start: int | None = None, end: bool = True
) -> None:
    """Create the query's topics and fill the input topic at full speed."""
    ensure_topics(settings.kafka, pipeline_topics(settings).values())
    words = source_words(tuples=tuples, zipf=zipf, start=start)
    replay(settings, generate("zipf", words, SourceOptions(values=("amount",))), end=end)
