"""DEBS 2015, query 1: the commonest routes. A route is a pair of cells of the challenge's grid."""

from evenflow.queries.builtin import BuiltInQuery

DEBS_Q1_ROUTES = BuiltInQuery(
    name="debs-q1-routes",
    what="the ten commonest routes, over 2 hours that slide by 5 minutes",
    source="taxi",
    data="20,000 rides of 2,000 taxis in the format of DEBS 2015, generated",
    columns=("pickup_cell", "dropoff_cell", "dropoff_datetime"),
    fields={
        "key": "route",
        "time": "dropoff_datetime",
        "time_unit": "iso",
        "window": "2h",
        "slide": "5m",
        "where": "pickup_cell IS NOT NULL AND dropoff_cell IS NOT NULL",
        "columns": {"route": "coalesce(pickup_cell, '') || ' ' || coalesce(dropoff_cell, '')"},
        "aggregates": {"rides": "count"},
        "emit": "top(10, rides)",
        "types": {"pickup_cell": "string", "dropoff_cell": "string"},
    },
)
