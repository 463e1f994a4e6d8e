"""DEBS 2015, query 2 as 001 reads it: the distance that each taxi drove."""

from evenflow.queries.builtin import BuiltInQuery

DEBS_Q2_DISTANCE = BuiltInQuery(
    name="debs-q2-distance",
    what="distance of each taxi, over 45 minutes that slide by one",
    source="taxi",
    data="20,000 rides of 2,000 taxis in the format of DEBS 2015, generated",
    columns=("medallion", "dropoff_datetime", "trip_distance"),
    fields={
        "key": "medallion",
        "time": "dropoff_datetime",
        "time_unit": "iso",
        "window": "45m",
        "slide": "1m",
        "aggregates": {"rides": "count", "miles": "sum(trip_distance)"},
    },
)
