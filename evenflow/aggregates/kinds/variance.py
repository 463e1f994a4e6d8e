"""variance(column): the variance of the values that are not null, of a sample or of a `population`."""

from __future__ import annotations

import pyarrow as pa

from evenflow.aggregates.aggregate import Aggregate, Documentation
from evenflow.aggregates.partials.moments import moments_column, sample_or_population, variances

VARIANCE = Aggregate(
    name="variance",
    forms=("variance(column)", "variance(column, population)"),
    read=sample_or_population,
    partials=lambda call: (moments_column(call),),
    result_type=lambda call: pa.float64(),
    finish=variances,
    documentation=Documentation(
        computes="the variance of a sample (divided by n - 1); with `population`, divided by n",
        nulls="ignored; null where there are fewer than two values (`population`: none)",
        bound="1e-9 (v + |mean| sqrt(v) + 1e-9 mean^2) for a variance v",
        state="24 bytes",
    ),
)
