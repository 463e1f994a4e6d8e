"""The queries whose state is kept, and the first half of their streams."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenflow.settings import KafkaSettings, Settings
from tests.pipeline.end_to_end import Stream, make_settings

RELEASES = Path(__file__).with_name("releases")
BEFORE = 1_200
"""Tuples of each stream that were written before the upgrade."""
SEED = 1
FOR_EVER = {
    "offsets.retention.minutes": str(2**31 - 1),
    "log.segment.bytes": str(2**20),
}
"""Properties of the broker: as before a long stop, committed offsets are to be kept."""
QUERIES: Mapping[str, Mapping[str, Any]] = {
    "fused": {
        "partitioner": {"name": "evenflow", "instances": 2},
        "spark": {"wiring": "fused", "buckets": 3},
    },
    "split": {
        "partitioner": {"name": "dalton-cooperative", "instances": 2},
        "spark": {"wiring": "split"},
        "results": {"sink": "frames"},
    },
    "updates": {
        "query": {"late": "update", "allowed_lateness": "3s"},
        "partitioner": {"name": "pkg"},
        "results": {"sink": "frames"},
    },
}
"""By name: what differs from the settings of other tests."""


def new(kafka: KafkaSettings, name: str, folder: Path) -> Settings:
    """The settings of one of `QUERIES`, and its topics."""
    return make_settings(kafka, name, folder, **{key: dict(value) for key, value in QUERIES[name].items()})


class HalfWritten(Stream):
    """A stream of which a release has written the first tuples. `recall` remembers them again."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, seed=SEED)
        self._recalls = False

    def recall(self, tuples: int) -> None:
        """Draw as many tuples as were written, and write none of them."""
        self._recalls = True
        self.write(tuples)
        self._recalls = False

    def _send(self, partition: int, key: bytes | None, value: bytes | None, row: Any) -> None:
        if self._recalls:
            self._remember(partition, key, row)
        else:
            super()._send(partition, key, value, row)
