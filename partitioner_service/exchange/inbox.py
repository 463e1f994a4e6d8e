"""Tables that have come and are not taken over yet."""

from __future__ import annotations

import threading
from collections import deque

from evenflow.partitioners.exchange import Table

MOST_TABLES = 8
MOST_BYTES = 64 * 1024 * 1024


class Inbox:
    """A queue of tables from the control plane to the data plane. It may be used from any thread.

    It holds `MOST_TABLES` tables and `MOST_BYTES` bytes of bodies at most. The oldest table gives way to a
    new one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: deque[Table] = deque()
        self._bytes = 0

    def put(self, table: Table) -> int:
        """Add a table. Returns how many older ones gave way."""
        with self._lock:
            self._tables.append(table)
            self._bytes += len(table.body)
            dropped = 0
            while len(self._tables) > MOST_TABLES or (self._bytes > MOST_BYTES and len(self._tables) > 1):
                self._bytes -= len(self._tables.popleft().body)
                dropped += 1
            return dropped

    def drain(self) -> list[Table]:
        """All tables in the order in which they came. The inbox is empty afterwards."""
        with self._lock:
            tables = list(self._tables)
            self._tables.clear()
            self._bytes = 0
            return tables

    def __len__(self) -> int:
        return len(self._tables)
