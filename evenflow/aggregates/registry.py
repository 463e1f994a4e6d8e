"""The aggregates that exist. A new aggregate is one file and one line here.

`aggregate` also gives those of one's own, by entry point or `module:Class` (own/).
"""

from __future__ import annotations

from evenflow import plugins
from evenflow.aggregates.aggregate import NUMBERS, Aggregate
from evenflow.aggregates.kinds.clusters import CLUSTERS
from evenflow.aggregates.kinds.collect import COLLECT
from evenflow.aggregates.kinds.count import COUNT
from evenflow.aggregates.kinds.count_distinct import COUNT_DISTINCT
from evenflow.aggregates.kinds.first import FIRST
from evenflow.aggregates.kinds.last import LAST
from evenflow.aggregates.kinds.max import MAX
from evenflow.aggregates.kinds.mean import MEAN
from evenflow.aggregates.kinds.min import MIN
from evenflow.aggregates.kinds.quantile import QUANTILE
from evenflow.aggregates.kinds.stddev import STDDEV
from evenflow.aggregates.kinds.sum import SUM
from evenflow.aggregates.kinds.top_k import TOP_K
from evenflow.aggregates.kinds.variance import VARIANCE
from evenflow.aggregates.own.adapter import as_aggregate
from evenflow.errors import ConfigError
from evenflow.text.spelling import did_you_mean

AGGREGATES: dict[str, Aggregate] = {
    aggregate.name: aggregate
    for aggregate in (
        COUNT,
        SUM,
        MEAN,
        MIN,
        MAX,
        VARIANCE,
        STDDEV,
        COUNT_DISTINCT,
        QUANTILE,
        FIRST,
        LAST,
        TOP_K,
        COLLECT,
        CLUSTERS,
    )
}

_OTHER_NAMES = {
    "avg": "mean",
    "average": "mean",
    "stdev": "stddev",
    "stddev_samp": "stddev",
    "std": "stddev",
    "var": "variance",
    "var_samp": "variance",
    "approx_count_distinct": "count_distinct",
    "approx_distinct": "count_distinct",
    "cardinality": "count_distinct",
    "distinct": "count_distinct",
    "nunique": "count_distinct",
    "uniq": "count_distinct",
    "median": "quantile",
    "percentile": "quantile",
    "approx_percentile": "quantile",
    "percentile_approx": "quantile",
    "array_agg": "collect",
    "collect_list": "collect",
    "mode": "top_k",
}
"""Names that SQL, Spark, pandas and other systems have for these aggregates."""


def known_aggregates() -> list[str]:
    """Names of the aggregates that may be written in [query.aggregates], sorted:
    ours and those of installed packages.
    """
    return sorted((*AGGREGATES, *plugins.AGGREGATES.names(own=AGGREGATES)))


def catalogue() -> list[plugins.Entry[Aggregate]]:
    """All aggregates by name, and behind evenflow's those that installed packages offer."""
    return plugins.AGGREGATES.entries(
        AGGREGATES, aggregate, lambda known: plugins.first_paragraph(known.documentation.computes)
    )


def every_form(*columns: str) -> dict[str, str]:
    """[query.aggregates] with every form of every aggregate that takes numbers, over each of these
    columns.
    """
    forms = [
        form for aggregate in AGGREGATES.values() if NUMBERS[0] in aggregate.over for form in aggregate.forms
    ]
    return {
        f"{number}_{column}": form.replace("(column", f"({column}")
        for number, form in enumerate(forms)
        for column in columns
    }


def aggregate(name: str) -> Aggregate:
    """The aggregate of this name: one of ours, one that an installed package offers,
    or a class as `module:Class`.

    Raises ConfigError, which lists the known names, if there is none, and if a class of one's own cannot be
    used.
    """
    if name in AGGREGATES:
        return AGGREGATES[name]
    if plugins.AGGREGATES.knows(name):
        return as_aggregate(name, plugins.AGGREGATES.load(name))
    known = known_aggregates()
    meant = name.lower() if name.lower() in AGGREGATES else _OTHER_NAMES.get(name.lower())
    likely = did_you_mean(name, known) if meant is None else f"; did you mean {meant!r}?"
    raise ConfigError(
        f"there is no aggregate {name!r}{likely}",
        hint=(
            f"known aggregates: {plugins.AGGREGATES.listed(sorted(AGGREGATES))}. One of your own is written"
            " as 'module:Class(column)'"
        ),
    )
