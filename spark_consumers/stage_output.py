"""How a stage's rows leave Spark: the epoch is checked before anything of a micro-batch becomes final.

Rule "one writer per stage".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Publish = Callable[[], None]
"""Makes the rows of a micro-batch visible that were written before."""

Write = Callable[["DataFrame", int], Publish | None]
"""(rows, number of the micro-batch): writes the rows. None if they are visible then."""


def checked(write: Write, check: Callable[[], None]) -> Callable[[DataFrame, int], None]:
    """The function that Spark's `foreachBatch` calls for each micro-batch.

    Spark has written the micro-batch's offsets before it calls this, and notes the micro-batch as done after
    it. check: raises an error if another driver has taken over.
    """

    def micro_batch(rows: DataFrame, batch: int) -> None:
        check()
        publish = write(rows, batch)
        if publish is not None:
            check()
            publish()

    return micro_batch


def into_kafka(options: Mapping[str, str]) -> Write:
    """Writes rows to Kafka. options: of Spark's format `kafka`."""

    def write(rows: DataFrame, batch: int) -> None:
        rows.write.format("kafka").options(**options).save()

    return write
