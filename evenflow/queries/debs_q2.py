"""DEBS 2015, query 2: the ten most profitable areas.

Profit of an area: the median of fare and tip of the rides that began there and ended in the last 15 minutes.
Vacant taxis of an area: those whose last ride of the last 30 minutes ended there. Profitability: profit by
vacant taxis.
"""

from evenflow.queries.builtin import BuiltInQuery

DEBS_Q2 = BuiltInQuery(
    name="debs-q2",
    what="the ten areas with the most profit by vacant taxi: 15 minutes of rides, 30 of taxis, by one minute",
    source="taxi",
    data="20,000 rides of 2,000 taxis in the format of DEBS 2015, generated",
    columns=(
        "medallion",
        "pickup_area",
        "dropoff_area",
        "dropoff_datetime",
        "fare_amount",
        "tip_amount",
    ),
    fields={
        "key": "medallion",
        "time": "dropoff_datetime",
        "time_unit": "iso",
        "window": "30m",
        "slide": "1m",
        # A ride that ended outside of the grid takes its taxi out of the area where it was: '' is no area of
        # a profit.
        "columns": {
            "dropoff": "coalesce(dropoff_area, '')",
            "paid": "CASE WHEN fare_amount > 0 THEN fare_amount + tip_amount END",
        },
        "aggregates": {"area": "last(dropoff)"},
        "types": {"dropoff_area": "string", "fare_amount": "decimal(2)", "tip_amount": "decimal(2)"},
        "views": {
            "profits": {
                "key": "pickup_area",
                "window": "15m",
                "aggregates": {"profit": "quantile(paid, 0.5, exact)"},
            }
        },
        "summaries": {
            "areas": {
                "of": {"query": "area", "profits": "key"},
                "aggregates": {
                    "vacant": "count(area)",
                    "profit": "max(profit)",
                    "profitability": "= profit / vacant",
                },
                "having": "vacant > 0 AND profit IS NOT NULL",
                "emit": "top(10, profitability)",
            }
        },
    },
)
