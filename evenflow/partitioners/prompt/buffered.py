"""What partitioners have in common that buffer a micro-batch with Prompt's accumulator and place its keys
at its end.
"""

from __future__ import annotations

from abc import abstractmethod

from evenflow.numeric.arrays import Int32s, Int64s, UInt64s
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.prompt.accumulator import Accumulator
from evenflow.partitioners.prompt.data_blocks import KeyPlacement, dispatch


class BufferedPartitioner(Partitioner):
    """Counts tuples as they arrive. A subclass makes `_buffer` in `_start`, and implements `_plan`."""

    micro_batch = True
    batch_clock = "arrival"
    _buffer: Accumulator

    @abstractmethod
    def _plan(self, counts: Int64s) -> KeyPlacement:
        """The data blocks of the batch's keys.
        counts: of each key, nearly or exactly descending, shape (keys,).
        """

    def _rescale(self) -> None:
        """Change nothing: between batches nothing is known of workers,
        and what is known of batches stays true.
        """

    def _assign(self, block: Block) -> None:
        self._add(block.keys, block.times, int(block.times.max()) + 1)
        self._finish(block.out)

    def _add(self, keys: UInt64s, times: Int64s, ends: int) -> None:
        self._buffer.add(keys, times, end_ms=ends)

    def _drop(self) -> None:
        self._buffer.drop()

    def _finish(self, out: Int32s) -> None:
        batch = self._buffer.finish()
        dispatch(self._plan(batch.counts), order=batch.order, entry=batch.entry, out=out)

    def _choices(self) -> int:
        return self.workers

    def _state_bytes(self) -> int:
        return self._buffer.nbytes + self._buffer.past.nbytes

    def _state_bound(self, keys: int) -> int:
        return self._buffer.bound(keys) + self._buffer.past.nbytes
