"""The aggregates there are. A new one is one file and one line here."""

from __future__ import annotations

from evenflow.aggregates.aggregate import Aggregate
from evenflow.aggregates.count import COUNT
from evenflow.aggregates.max import MAX
from evenflow.aggregates.mean import MEAN
from evenflow.aggregates.min import MIN
from evenflow.aggregates.sum import SUM
from evenflow.errors import ConfigError

AGGREGATES: dict[str, Aggregate] = {
    aggregate.name: aggregate
    for aggregate in (
        COUNT,
        SUM,
        MEAN,
        MIN,
        MAX,
    )
}


def known_aggregates() -> list[str]:
    """Names that may be written in [query.aggregates], sorted."""
    return sorted(AGGREGATES)


def aggregate(name: str) -> Aggregate:
    """The aggregate of this name; ConfigError listing the known ones otherwise."""
    if name not in AGGREGATES:
        raise ConfigError(
            f"there is no aggregate {name!r}", hint=f"known aggregates: {', '.join(known_aggregates())}"
        )
    return AGGREGATES[name]
