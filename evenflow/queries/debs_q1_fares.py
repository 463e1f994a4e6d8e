"""DEBS 2015, query 1 as 001 reads it: the total fare of each taxi."""

from evenflow.queries.builtin import BuiltInQuery

DEBS_Q1_FARES = BuiltInQuery(
    name="debs-q1-fares",
    what="total fare of each taxi, over 2 hours that slide by 5 minutes",
    source="taxi",
    data="20,000 rides of 2,000 taxis in the format of DEBS 2015, generated",
    columns=("medallion", "dropoff_datetime", "fare_amount"),
    fields={
        "key": "medallion",
        "time": "dropoff_datetime",
        "time_unit": "iso",
        "window": "2h",
        "slide": "5m",
        "aggregates": {"rides": "count", "fares": "sum(fare_amount)"},
    },
)
