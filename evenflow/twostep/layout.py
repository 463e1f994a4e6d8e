"""Shape of a running query: what combiner and reducer hold every frame and blob against."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Fixed for the life of a query, but for `max_bytes`: how large a blob may be before it is cut.

    fingerprint: of the query. topic_id: Kafka's id of the routed topic.
    """

    fingerprint: str
    topic_id: str
    input_partitions: int
    routed_partitions: int
    buckets: int
    max_bytes: int

    def watcher(self, routed: int) -> int:
        """The bucket that watches the lanes of this routed partition for input that was routed twice."""
        return routed % self.buckets
