"""Answers of the product's pure functions, kept for one run: its settings never change, so their answers
do not either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenflow.settings import Settings
from topics import clients

_FINGERPRINT = Settings.fingerprint
_TOPIC = Settings.topic
_CONFIG = clients.librdkafka_config


def seams() -> list[tuple[Any, str, Any]]:
    """(where a name stands, the name, what answers from memory), for one run."""
    known: dict[tuple[object, ...], Any] = {}

    def kept(key: tuple[object, ...], held: object, answer: Callable[[], Any]) -> Any:
        """held: what the ids in the key are of. It lives as long as the answer, so no other object gets
        its id.
        """
        result = known.get(key)
        if result is None:
            result = known[key] = answer(), held
        return result[0]

    def fingerprint(self: Settings) -> str:
        origin = self.origin
        key = (id(self.query), id(origin), origin.routed_partitions, self.buckets)
        return kept(key, (self.query, origin), lambda: _FINGERPRINT.fget(self))  # type: ignore[attr-defined]

    def topic(self: Settings, role: Any) -> str:
        return kept((id(self), role), self, lambda: _TOPIC(self, role))

    def config(kafka: Any, **more: Any) -> dict[str, Any]:
        return dict(kept((id(kafka), *more.items()), kafka, lambda: _CONFIG(kafka, **more)))

    return [
        (Settings, "fingerprint", property(fingerprint)),
        (Settings, "topic", topic),
        (clients, "librdkafka_config", config),
    ]
