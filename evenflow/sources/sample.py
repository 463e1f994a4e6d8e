"""The first tuples of a source as the sample that `evenflow.advice` takes.

A sample is consecutive, not drawn at random: windows, drift and what a partitioner learns are of neighbours.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.advice import Sample
from evenflow.sources.source import Source


def first_tuples(source: Source, tuples: int, *, timed: bool) -> Sample:
    """The first tuples of a source in its own order; `timed`: its times are not made up."""
    keys: list[pa.Array] = []
    times: list[np.ndarray] = []
    read = 0
    for batch in source.batches():
        keys.append(batch.keys)
        times.append(batch.times)
        read += len(batch)
        if read > tuples:
            break
    return Sample(
        name=source.name,
        keys=pa.chunked_array(keys, pa.large_binary()).combine_chunks()[:tuples],
        times=np.concatenate([np.empty(0, np.int64), *times])[:tuples],
        timed=timed,
        complete=read <= tuples,
    )
