"""Costs of tuples from a column of numbers: rounded, between 1 and `MAX_COST`,
with what was changed in words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Int64s
from evenflow.partitioners.costs import MAX_COST, weighed


@dataclass(frozen=True, eq=False, kw_only=True)
class CostColumn:
    """The costs that a column says, and how many of its values were changed."""

    name: str
    """The column as the user named it."""
    costs: Int64s
    """The cost of each tuple, 1 to `MAX_COST`, shape (m,)."""
    rounded: int
    """Values that were no whole numbers, and are from 1 to `MAX_COST` once they are rounded."""
    low: int
    """Values that are below 1 also when rounded, and missing ones. They count as 1."""
    high: int
    """Values that are above `MAX_COST` also when rounded. They count as `MAX_COST`."""

    @property
    def same(self) -> int | None:
        """The cost that all tuples have. None if costs differ, or if there is no tuple."""
        return int(self.costs[0]) if len(self.costs) and bool((self.costs == self.costs[0]).all()) else None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the user should know of the column, each as a sentence: what was changed, and that all
        costs are equal.
        """
        changes = {
            "rounded to whole numbers": self.rounded,
            "below 1 or missing, which count as 1": self.low,
            f"above {MAX_COST:,}, which count as {MAX_COST:,} (a larger unit would tell them apart)": (
                self.high
            ),
        }
        changed = [f"{count:,} {effect}" for effect, count in changes.items() if count]
        sentences = []
        if changed:
            sentences.append(f"values of the cost column {self.name!r} were changed: {'; '.join(changed)}")
        if self.same is not None:
            sentences.append(
                f"every tuple has the cost {self.same:,} in {self.name!r}, so weighing changes nothing"
            )
        return tuple(sentences)


def cost_column(column: pa.ChunkedArray | pa.Array, *, name: str, where: str) -> CostColumn:
    """The costs of this column. Numbers may be given as text, and a blank text is missing.

    Values are rounded (a half to the even number), and then those below 1 become 1, and those above
    `MAX_COST` become `MAX_COST`. name, where: the column and its source, for messages. ConfigError for a
    column that holds no numbers.
    """
    values = _numbers(column, name, where).to_numpy(zero_copy_only=False)
    costs, low, high = weighed(values)
    whole = np.rint(values)
    rounded = (whole >= 1) & (whole <= MAX_COST) & (values != whole)
    return CostColumn(name=name, costs=costs, rounded=int(rounded.sum()), low=low, high=high)


def in_settings(column: str) -> str:
    """The column as the setting `partitioner.cost` takes it: in double quotes if it is no plain name."""
    if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", column):
        return column
    escaped = column.replace('"', '""')
    return f'"{escaped}"'


def _numbers(column: pa.ChunkedArray | pa.Array, name: str, where: str) -> pa.Array:
    """The column as float64. A missing value is null or NaN."""
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(flat.type):
        flat = flat.cast(flat.type.value_type)
    kind = flat.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = pc.utf8_trim_whitespace(flat)
        text = pc.if_else(pc.equal(text, ""), pa.scalar(None, kind), text)
        try:
            return text.cast(pa.float64())
        except pa.ArrowInvalid:
            raise ConfigError(
                f"{where}: the cost column {name!r} holds {_first_text(text)!r}, which is not a number",
                hint=_HINT,
            ) from None
    if pa.types.is_null(kind) or not (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    ):
        raise ConfigError(f"{where}: the cost column {name!r} holds {kind}, not numbers", hint=_HINT)
    return flat.cast(pa.float64(), safe=False)


_HINT = "a cost is a number: rows, bytes, microseconds; choose another --cost"


def _first_text(texts: pa.Array) -> str:
    """The first text that is no number."""
    for text in texts:
        try:
            text.cast(pa.float64())
        except pa.ArrowInvalid:
            return str(text)
    raise AssertionError("every text is a number")
