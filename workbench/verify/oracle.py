"""One result column, as verify computes it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """One result column, as verify computes it.

    value: SQL of the exact value. tolerance: SQL of how far the result may be off, 0 for not at all. If the tolerance is
    infinite, any result but null is right. If it is below 0, it counts as above 0, and null is right, too. whole:
    whether `value` and `tolerance` are over the tuples of a window (columns `time`, `v0`, ...) and not over its totals.
    unfit: SQL, whether the value is null because it does not fit int64, or its room. It is over what `value` is over.
    kind: type of the result. wrong: SQL, whether result `g` is wrong beside the exact value `e`. It is for values that
    a tolerance cannot judge. None: the tolerance judges.
    """

    value: str
    kind: pa.DataType
    tolerance: str = "0"
    whole: bool = False
    unfit: str = "false"
    wrong: str | None = None
