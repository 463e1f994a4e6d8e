"""Messages of one round to the reducer, made by hand or drawn, and the table that it makes of them."""

import numpy as np
from hypothesis import strategies as st

from evenflow.partitioners.dalton.messages import GlobalTable, SyncMessage
from evenflow.partitioners.exchange import Message
from tests.unit.partitioners.dalton.cooperation import reducer


def told(
    j: int,
    *,
    total: int = 100,
    counts: dict[int, int] | None = None,
    rows: dict[int, list[float]] | None = None,
    workers: int = 3,
    number: int = 1,
    late: int = 0,
) -> Message:
    counts, rows = counts or {}, rows or {}
    body = SyncMessage(
        total=total,
        late=late,
        keys=np.array(sorted(counts), np.uint64),
        frequencies=np.array([counts[k] for k in sorted(counts)], np.int64),
        row_keys=np.array(sorted(rows), np.uint64),
        values=np.array([rows[k] for k in sorted(rows)], np.float64).reshape(len(rows), workers),
    )
    return Message(j, number, body.to_bytes())


@st.composite
def rounds(draw: st.DrawFn) -> tuple[list[Message], int]:
    """Messages of one round, with hot, cold and unknown keys on every side."""
    workers = draw(st.integers(1, 5))
    messages = []
    for j in range(draw(st.integers(1, 5))):
        counts = draw(st.dictionaries(st.integers(0, 8), st.integers(1, 50), max_size=8))
        some = draw(st.sets(st.sampled_from(sorted(counts)))) if counts else set()
        values = st.lists(st.floats(-2, 0.5), min_size=workers, max_size=workers)
        rows = {key: draw(values) for key in some | draw(st.sets(st.integers(0, 8), max_size=2))}
        total = sum(counts.values()) + draw(st.integers(0, 40))
        messages.append(told(j, total=total, counts=counts, rows=rows, workers=workers))
    return messages, workers


def bodies(messages: list[Message]) -> list[SyncMessage]:
    return [SyncMessage.from_bytes(message.body) for message in messages]


def reduced(messages: list[Message], workers: int) -> GlobalTable:
    made = reducer(workers)
    for message in messages:
        made.check(message)
    return GlobalTable.from_bytes(made.merge(messages))
