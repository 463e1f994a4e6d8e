"""Shape of a running query. Combiner and reducer refuse every frame and blob that does not fit it."""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.keys import bucket_of
from evenflow.numeric.arrays import Int32s, UInt64s


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Shape of a query. All of it but `max_bytes` and `input_partitions` is fixed for the life of the
    query.
    """

    fingerprint: str
    """Fingerprint of the query. A frame or blob with another one is refused."""
    topic_id: str
    """Kafka's id of the routed topic."""
    input_partitions: int
    """Partitions of the input topic: marks and lanes are kept for each."""
    routed_partitions: int
    """Partitions of the routed topic."""
    shared_by: int = 1
    """Most workers that share a routed partition."""
    buckets: int
    """Reduce buckets, among which the keys are divided."""
    forwarding_seed: int | None = None
    """With forwarding, the bucket of a key is F_1 of the family of this seed (`keys.bucket_of`).
    None: keys are divided by a hash of their own."""
    max_bytes: int
    """A larger blob is cut into parts."""
    frames_of: str | None = None
    """For a view, the fingerprint of the query that routed the frames.
    None for a query that reads its own frames."""
    reduce_tasks: int | None = None
    """How many reduce tasks merge the clusters of a micro-batch before their buckets do (`reduce_task`).
    None: the combiner sends each cluster to its bucket."""

    def bucket_of(self, hashes: UInt64s) -> Int32s:
        """The bucket of every key hash, shape (m,)."""
        return bucket_of(hashes, self.buckets, forwarding_seed=self.forwarding_seed)

    @property
    def in_frames(self) -> str:
        """The fingerprint that the frames must have."""
        return self.fingerprint if self.frames_of is None else self.frames_of

    @property
    def receivers(self) -> int:
        """How many receivers the combiner's blobs have: reduce tasks,
        or buckets if there are no reduce tasks.
        """
        return self.buckets if self.reduce_tasks is None else self.reduce_tasks

    def watcher(self, routed: int) -> int:
        """The bucket that watches the lanes of this routed partition for input that was routed twice."""
        return routed % self.buckets

    def lanes_go_to(self, routed: int) -> int:
        """The receiver that the combiner tells of the lanes of this routed partition. Reduce task 0 is
        told of all.
        """
        return self.watcher(routed) if self.reduce_tasks is None else 0
