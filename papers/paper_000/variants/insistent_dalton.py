"""Cooperating Daltons that tell anew at the end of each interval, also while they wait for a table.

Algorithm 2 of 000 says "if time from last sync = DSYNC" without asking for the state. So it can be read in
this way. Ours tells its open message again instead (`evenflow/partitioners/dalton/cooperative.py`). Here each
message is one of a new round, the reducer works through all of them, and every table that comes ends AWAIT,
however old it is.
"""

from __future__ import annotations

from evenflow.partitioners.dalton.cooperative import DaltonCooperative
from evenflow.partitioners.exchange import Table


class InsistentDalton(DaltonCooperative):
    """A Dalton that tells anew while it waits. Use it with `keep_rewards`."""

    def hear(self, table: Table, now: int) -> bool:
        """Take over the common table, also if younger messages are open."""
        following = self.round + self.awaiting
        self._sync["round"] = min(self.round, table.round)
        taken = super().hear(table, now)
        self._sync["round"] = max(following, table.round + 1)
        return taken

    def _boundary(self, time: int) -> None:
        if self.awaiting:
            # The open message was told. The next one is of the next round, and asks for a longer interval.
            self._sync["round"] += 1
            self._sync["awaiting"], self._sync["late"] = 0, self.dsync_ms
        super()._boundary(time)
