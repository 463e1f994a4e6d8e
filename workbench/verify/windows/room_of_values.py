"""Which values are null because they take more than their room, in SQL (docs/aggregates.md, "Room").

The sizes are computed from the tuples of the window, and not from partials as in the pipeline.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from evenflow.aggregates.aggregate import Call
from evenflow.aggregates.partials.clustering import clusters_room
from evenflow.limits import ENTRY_BYTES
from workbench.verify.windows.result_column import Oracle

_TEXTS = ("min", "max", "first", "last")


def within_room(oracle: Oracle, name: str, at: int, call: Call) -> Oracle:
    """The oracle of aggregate `name` of column v`at`, with null for what does not fit."""
    text = pa.types.is_string(call.type)
    if name in _TEXTS:
        return _null_beyond(oracle, f"strlen({oracle.value})", call.room.result) if text else oracle
    if name == "collect":
        return _null_beyond(oracle, _entries(oracle.value, text), call.room.result)
    if name == "clusters":
        return _null_beyond(oracle, _distinct(at, text), clusters_room(call))
    if name == "quantile" and not call.options[1]:
        # There are no more bins than different values. If these had room, the bins did.
        bound = (
            f"CASE WHEN {_distinct(at, text)} > {call.room.state} THEN -1 ELSE 1 END * ({oracle.tolerance})"
        )
        return replace(oracle, tolerance=bound)
    if name in ("count_distinct", "quantile") and call.options and call.options[-1]:
        return _null_beyond(oracle, _distinct(at, text), call.room.state)
    if name == "top_k" and not call.options[1]:
        listed = _entries(f"list_transform({oracle.value}, lambda p: p.value)", text)
        large = f"({_distinct(at, text)} > {call.room.state} OR {listed} > {call.room.result})"
        return _null_if(oracle, large)
    return oracle


def _null_beyond(oracle: Oracle, size: str, room: int) -> Oracle:
    return _null_if(oracle, f"({size} > {room})")


def _null_if(oracle: Oracle, large: str) -> Oracle:
    large = f"coalesce({large}, false)"
    return replace(oracle, value=f"CASE WHEN NOT {large} THEN {oracle.value} END", unfit=large)


def _distinct(at: int, text: bool) -> str:
    """SQL: what the different values of a column take."""
    values = f"(list(DISTINCT v{at}) FILTER (v{at} IS NOT NULL))"
    return _entries(values, text) if text else f"{ENTRY_BYTES} * count(DISTINCT v{at})"


def _entries(values: str, text: bool) -> str:
    """SQL: what a list of values takes."""
    texts = f" + coalesce(list_sum(list_transform({values}, lambda x: strlen(x))), 0)" if text else ""
    return f"({ENTRY_BYTES} * coalesce(len({values}), 0){texts})"
