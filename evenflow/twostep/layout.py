"""Shape of a running query: what combiner and reducer hold every frame and blob against."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Fixed for the life of a query, but for `max_bytes`: how large a blob may be before it is cut.

    fingerprint: of the query. topic_id: Kafka's id of the routed topic. frames_of: fingerprint of the query that routed
    the frames, which a view reads. None: they are the query's own.
    """

    fingerprint: str
    topic_id: str
    input_partitions: int
    routed_partitions: int
    buckets: int
    max_bytes: int
    frames_of: str | None = None

    @property
    def in_frames(self) -> str:
        """The fingerprint that the frames must have."""
        return self.fingerprint if self.frames_of is None else self.frames_of

    def watcher(self, routed: int) -> int:
        """The bucket that watches the lanes of this routed partition for input that was routed twice."""
        return routed % self.buckets
