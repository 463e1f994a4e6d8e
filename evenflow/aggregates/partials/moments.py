"""Number, mean and sum of squared distances from the mean (n, mean, M2). Variances are made of these.

Rows are taken in by Welford's rule, and partials are joined by the rule of Chan, Golub and LeVeque (1979).
Neither takes a difference of large squares. So for up to a million values, in any order, the rounding error
of a variance v of values with mean m stays below 1e-9 (v + |m| sqrt(v) + 1e-9 m^2), and that of its root
below 1e-9 (sqrt(v) + |m|). Whole numbers and decimals are taken as the nearest doubles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.aggregate import Call, PartialColumn
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.multisets import present
from evenflow.aggregates.partials.orders import as_floats
from evenflow.numeric.arrays import Float64s, Int32s, Int64s, one_chunk
from evenflow.numeric.kernels import kernel

_TYPE = pa.struct([("n", pa.int64()), ("mean", pa.float64()), ("m2", pa.float64())])


class _Moments(NamedTuple):
    """The moments of each group, shape (groups,) each: what kernels take as one argument."""

    n: Int64s
    """How many values the group has."""
    mean: Float64s
    """Mean of the values, 0 without any."""
    m2: Float64s
    """Sum of (value - mean)^2."""


@kernel
def _take_in(group_ids: Int64s, values: Float64s, into: _Moments) -> None:
    """Welford: mean' = mean + (x - mean) / n, M2' = M2 + (x - mean) (x - mean')."""
    n, mean, m2 = into
    for row in range(group_ids.shape[0]):
        group, value = group_ids[row], values[row]
        n[group] += 1
        off = value - mean[group]
        mean[group] += off / n[group]
        m2[group] += off * (value - mean[group])


@kernel
def _join(group_ids: Int32s, others: _Moments, into: _Moments) -> None:
    """Chan, Golub and LeVeque, d being the difference of the means:
    M2 = M2_a + M2_b + d^2 n_a n_b / (n_a + n_b).
    """
    ns, means, m2s = others
    n, mean, m2 = into
    for row in range(group_ids.shape[0]):
        group, more = group_ids[row], ns[row]
        if more == 0:
            continue
        if n[group] == 0:
            n[group], mean[group], m2[group] = more, means[row], m2s[row]
            continue
        total = n[group] + more
        off = means[row] - mean[group]
        share = np.float64(more) / np.float64(total)
        m2[group] += m2s[row] + off * off * np.float64(n[group]) * share
        mean[group] += off * share
        n[group] = total


def moments_column(call: Call) -> PartialColumn:
    """Partial column: the moments of the values that are not null."""
    return PartialColumn(
        name=f"mom_{call.column}", type=_TYPE, source=call.column, combine=_combine, merge=_merge
    )


def variances(partials: pa.Table, call: Call) -> pa.Array:
    """M2 / (n - 1), or M2 / n with the option `population`. Null if the divisor is not above 0."""
    moments = one_chunk(partials[f"mom_{call.column}"])
    divisor = moments.field("n").to_numpy() - (0 if "population" in call.options else 1)
    known = divisor > 0
    return pc.divide(
        moments.field("m2"), pa.array(np.where(known, divisor, 1).astype(np.float64), mask=~known)
    )


def sample_or_population(written: tuple[str, ...]) -> tuple[str, ...]:
    """Reads the options: none, or `population`. Raises ValueError for anything else."""
    if written not in ((), ("population",)):
        raise ValueError("its only option is population: that of a sample is the default")
    return written


def _combine(column: pa.Array | None, groups: Grouping) -> pa.Array:
    group_ids, values, _ = present(column, groups)
    moments = _empty(groups.count)
    _take_in(group_ids, as_floats(values), moments)
    return _structs(moments)


def _merge(column: pa.Array | None, groups: Grouping) -> pa.Array:
    assert column is not None
    moments = _empty(groups.count)
    _join(groups.ids, _Moments(*(column.field(name).to_numpy() for name in _Moments._fields)), moments)
    return _structs(moments)


def _empty(count: int) -> _Moments:
    return _Moments(np.zeros(count, np.int64), np.zeros(count), np.zeros(count))


def _structs(moments: _Moments) -> pa.Array:
    return pa.StructArray.from_arrays([pa.array(column) for column in moments], list(_Moments._fields))
