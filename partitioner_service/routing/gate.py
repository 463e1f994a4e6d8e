"""What stands between reading and routing: blocks are routed at once,
or held until their micro-batch is whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol

from evenflow.progress import PartitionState
from evenflow.telemetry import BatchesState
from partitioner_service.block import Slice
from partitioner_service.routing.pieces import RoutedBlock
from partitioner_service.routing.router import Router

States = Mapping[int, PartitionState]
"""A state of each of some partitions."""
Why = Literal["memory", "skew", "partitions", "skip", "end"]
"""Why a batch is cut before it is whole.

memory: more is held than `partitioner.batch_bytes`. skew: nothing comes, because partitions are paused that
are ahead of others (`max_skew`). partitions: input partitions are taken in. skip: an operator skips offsets.
end: the input has ended.
"""


class Owner(Protocol):
    """Who owns input partitions, and their working states."""

    @property
    def states(self) -> States:
        """The working state of every owned partition, as it is now."""

    def move(self, states: States) -> None:
        """Bring the working states of these partitions up to date."""


class Gate(Protocol):
    """Takes what was read, and lets it out as routed blocks.

    A partition has two states. Its working state stands behind all that was read. Its *released* state
    stands before the first record that is still held here. Only released states are committed or told to
    workers.
    """

    def take(self, slices: Sequence[Slice], owner: Owner) -> Iterator[RoutedBlock]:
        """Take a block, and bring the owner's working states up to date.
        Yields what is released because of it.

        Whatever is yielded must be written before the next is asked for. Raises as `Router.route`.
        """

    def due(self, states: States) -> Iterator[RoutedBlock]:
        """What is released because time has passed, or because a partition sleeps now."""

    def empty(self, states: States, *, why: Why) -> Iterator[RoutedBlock]:
        """Release all that is held, whether its batch is whole or not. why: is counted."""

    def released(self, states: States) -> dict[int, PartitionState]:
        """The released states of these partitions. states: their working states."""

    def committed(self, states: States) -> dict[int, PartitionState]:
        """Note that these released states were committed as they are here.

        Returns the states of those partitions of which nothing is held: there, the working state is the same.
        """

    def drop(self) -> None:
        """Forget what is held: it will be read again."""

    @property
    def holds(self) -> bool:
        """Whether anything is held."""

    def reading(self, most: int, linger: float) -> tuple[int, float]:
        """Note that the next read begins.
        How many records it may take, and how long (s) it may wait for them.

        most, linger: the same where no batch is about to be cut.
        """

    def written(self) -> None:
        """Note that the last released block was handed to Kafka's client."""

    def state(self) -> BatchesState | None:
        """What telemetry says about batches. None where there are none."""


class Straight:
    """Routes each block at once, tuple by tuple."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def take(self, slices: Sequence[Slice], owner: Owner) -> Iterator[RoutedBlock]:
        """The routed block. As `Gate.take`."""
        routed = self._router.route(slices, owner.states)
        owner.move(routed.states)
        yield routed

    def due(self, states: States) -> Iterator[RoutedBlock]:
        """Nothing."""
        yield from ()

    def empty(self, states: States, *, why: Why) -> Iterator[RoutedBlock]:
        """Nothing."""
        yield from ()

    def released(self, states: States) -> dict[int, PartitionState]:
        """These states."""
        return dict(states)

    def committed(self, states: States) -> dict[int, PartitionState]:
        """These states: nothing is ever held."""
        return dict(states)

    def drop(self) -> None:
        """Nothing is held."""

    @property
    def holds(self) -> bool:
        """Nothing ever is."""
        return False

    def reading(self, most: int, linger: float) -> tuple[int, float]:
        """As many records, and as long, as usual."""
        return most, linger

    def written(self) -> None:
        """Nobody measures it."""

    def state(self) -> BatchesState | None:
        """None: there are no batches."""
        return None
