"""What follows an aborted transaction: its blocks are read again.

After several aborts in a row the service ends.
"""

from __future__ import annotations

import logging

from evenflow.errors import ServiceError
from partitioner_service.kafka.sink import CommitAborted
from partitioner_service.kafka.source import Source

log = logging.getLogger(__name__)

_MOST = 5


class Aborts:
    """Counts the aborted transactions since the last commit."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._in_a_row = 0

    def note(self, error: CommitAborted) -> None:
        """Count an aborted transaction. The source goes back to the committed states.

        Raises ServiceError once too many transactions in a row were aborted.
        """
        self._in_a_row += 1
        if self._in_a_row >= _MOST:
            raise ServiceError(
                f"{self._in_a_row} transactions in a row were aborted, the last one because: {error}"
            )
        log.warning("transaction aborted, reading its blocks again: %s", error)
        self._source.rewind(self._source.committed)

    def over(self) -> None:
        """Begin to count anew, because a transaction was committed."""
        self._in_a_row = 0
