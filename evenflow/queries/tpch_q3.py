"""TPC-H Q3 as a stream: revenue of the orders of one market segment."""

from evenflow.queries.builtin import BuiltInQuery

TPCH_Q3 = BuiltInQuery(
    name="tpch-q3",
    what="the ten orders of one market segment with the most revenue, over 28 days that slide by 7",
    source="tpch:scale=0.01",
    data="60,175 rows of lineitem at scale 0.01, made by tpchgen-cli at the first use",
    columns=(
        "l_orderkey",
        "o_orderdate",
        "o_shippriority",
        "c_mktsegment",
        "l_shipdate",
        "l_extendedprice",
        "l_discount",
    ),
    fields={
        "key": ["l_orderkey", "o_orderdate", "o_shippriority"],
        "time": "l_shipdate",
        "time_unit": "iso",
        "window": "28d",
        "slide": "7d",
        # Days in ISO 8601 are in order as texts.
        "where": "c_mktsegment = 'BUILDING' AND o_orderdate < '1995-03-15' AND l_shipdate > '1995-03-15'",
        "columns": {
            "disc_price": "l_extendedprice * (1 - l_discount)",
        },
        "aggregates": {"revenue": "sum(disc_price)"},
        "emit": "top(10, revenue)",
        "types": {
            "l_orderkey": "int64",
            "o_shippriority": "int64",
            "l_extendedprice": "decimal(2)",
            "l_discount": "decimal(2)",
        },
    },
)
