"""DEBS 2015, query 2, without the vacant taxis that it divides by (`debs_q2`):
what a ride from each area pays.
"""

from evenflow.queries.builtin import BuiltInQuery

DEBS_Q2_AREAS = BuiltInQuery(
    name="debs-q2-areas",
    what="median pay of rides from each area, without vacant taxis, over 45 minutes that slide by one",
    source="taxi",
    data="20,000 rides of 2,000 taxis in the format of DEBS 2015, generated",
    columns=("pickup_area", "dropoff_datetime", "fare_amount", "tip_amount"),
    fields={
        "key": "area",
        "time": "dropoff_datetime",
        "time_unit": "iso",
        "window": "45m",
        "slide": "1m",
        "where": "pickup_area IS NOT NULL AND fare_amount > 0",
        "columns": {"area": "coalesce(pickup_area, '')", "paid": "fare_amount + tip_amount"},
        "aggregates": {"rides": "count", "median": "quantile(paid, 0.5)"},
        "types": {"pickup_area": "string", "fare_amount": "decimal(2)", "tip_amount": "decimal(2)"},
    },
)
