"""How far the mark of an input partition stays behind its event times, by offset.

`out_of_orderness` may grow while a query runs, and the mark does not fall then. As the delay only grows, the
mark is the largest event time of any accepted tuple less the delay that held at the offset of that tuple.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from evenflow.settings import Query
from workbench.verify.inputs import CommittedInput

_SCHEMA = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("delay", pa.int64())])


class Delays:
    """The delays (ms) of an input partition. steps: (offset, delay) for each, in the order of offsets."""

    def __init__(self, query: Query, state: CommittedInput) -> None:
        late = query.allowed_lateness
        # Before the first offset, because it may have grown at once, and then no record was judged by the
        # first value.
        self.steps = [
            (-1, query.first_out_of_orderness + late),
            *((offset, disorder + late) for offset, disorder in state.disorders),
        ]

    @property
    def first(self) -> int:
        """The smallest delay of any record of the query."""
        return self.steps[0][1]

    @property
    def last(self) -> int:
        """The delay of the newest records, which is the largest."""
        return self.steps[-1][1]


def load_delays(db: duckdb.DuckDBPyConnection, query: Query, committed: Sequence[CommittedInput]) -> None:
    """Make view `marked`: the readable records with the mark (ms) that each tuple gives its partition
    if it is accepted.

    Needs `readable`.
    """
    delays = [Delays(query, state) for state in committed]
    if all(len(partition_delays.steps) == 1 for partition_delays in delays):
        delay = query.first_out_of_orderness + query.allowed_lateness
        db.execute(f"CREATE VIEW marked AS SELECT *, time - {delay} AS own FROM readable")
        return
    rows = [
        {"partition": state.partition, "offset": offset, "delay": delay}
        for state, partition_delays in zip(committed, delays, strict=True)
        for offset, delay in partition_delays.steps
    ]
    db.register("source", pa.Table.from_pylist(rows, schema=_SCHEMA))
    db.execute("CREATE TABLE delays AS SELECT * FROM source")
    db.unregister("source")
    db.execute(
        """CREATE VIEW marked AS SELECT r.*, r.time - d.delay AS own
           FROM readable r ASOF JOIN delays d ON r.partition = d.partition AND r."offset" >= d."offset\""""
    )
