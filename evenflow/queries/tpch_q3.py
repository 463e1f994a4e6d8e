"""TPC-H Q3 as a stream of lineitems that is joined with a table of orders and customers."""

from evenflow.queries.builtin import BuiltInQuery

TPCH_Q3 = BuiltInQuery(
    name="tpch-q3",
    what=(
        "the ten orders of one market segment with the most revenue, by a join, over 28 days that slide by 7"
    ),
    source="tpch:scale=0.01",
    data="60,175 rows of lineitem at scale 0.01, made by tpchgen-cli at the first use",
    columns=(
        "l_orderkey",
        "l_shipdate",
        "l_extendedprice",
        "l_discount",
    ),
    lookup_words="table=orders",
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
        "lookup": {
            "file": "orders.parquet",
            "key": "l_orderkey",
            "file_key": "o_orderkey",
            "columns": {"o_orderdate": "string", "o_shippriority": "int64", "c_mktsegment": "string"},
        },
        "types": {
            "l_orderkey": "int64",
            "l_extendedprice": "decimal(2)",
            "l_discount": "decimal(2)",
        },
    },
)
