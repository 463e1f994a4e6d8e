"""The reducer of cooperating Daltons with the mean that section 4.1 of 000 prints.

It divides a key's sum by GL and by the number of partitioners:

    Q(k, i) = sum_j f_j(k) / GL * Q_j(k, i) / P

Ours divides by the tuples of the key instead (`evenflow/partitioners/dalton/reducer.py`). So all printed
values of a key are ours times the key's share of GL, over P. They are close to 0, and rewards are below 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenflow.partitioners.dalton.messages import GlobalTable, SyncMessage
from evenflow.partitioners.dalton.reducer import QTableReducer
from evenflow.partitioners.exchange import Message


class PrintedMean(QTableReducer):
    """Makes tables as printed. A key that nobody has learned keeps the value that ours gives it."""

    def merge(self, messages: Sequence[Message]) -> bytes:
        """The bytes of the `GlobalTable`."""
        table = GlobalTable.from_bytes(super().merge(messages))
        learned = np.zeros(len(table.keys))
        for report in (SyncMessage.from_bytes(message.body) for message in messages):
            with_row = np.isin(report.keys, report.row_keys, assume_unique=True)
            seen = dict(
                zip(report.keys[with_row].tolist(), report.frequencies[with_row].tolist(), strict=True)
            )
            learned += [seen.get(key, 0) for key in table.keys.tolist()]
        share = np.where(learned > 0, learned / (table.total * len(messages)), 1.0)
        return replace(table, values=table.values * share[:, None]).to_bytes()
