"""stddev(column): the standard deviation of the values that are not null, of a sample or of a
`population`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.aggregate import Aggregate, Documentation
from evenflow.aggregates.partials.moments import moments_column, sample_or_population, variances

STDDEV = Aggregate(
    name="stddev",
    forms=("stddev(column)", "stddev(column, population)"),
    read=sample_or_population,
    partials=lambda call: (moments_column(call),),
    result_type=lambda call: pa.float64(),
    finish=lambda partials, call: pc.sqrt(variances(partials, call)),
    documentation=Documentation(
        computes="the standard deviation of a sample (divided by n - 1); with `population`, divided by n",
        nulls="ignored; null where there are fewer than two values (`population`: none)",
        bound="1e-9 (s + |mean|) for a deviation s",
        state="24 bytes",
    ),
)
