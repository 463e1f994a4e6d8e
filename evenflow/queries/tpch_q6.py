"""TPC-H Q6 as a stream: what a discount has cost, by month of the shipment."""

from evenflow.queries.builtin import BuiltInQuery

TPCH_Q6 = BuiltInQuery(
    name="tpch-q6",
    what="revenue lost to middling discounts by month, over 28 days that slide by 7",
    source="tpch:scale=0.01",
    data="60,175 rows of lineitem at scale 0.01, made by tpchgen-cli at the first use",
    columns=("l_shipdate", "l_extendedprice", "l_discount", "l_quantity"),
    fields={
        "key": "month",
        "time": "l_shipdate",
        "time_unit": "iso",
        "window": "28d",
        "slide": "7d",
        "where": "left(l_shipdate, 4) = '1994' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
        "columns": {"month": "left(l_shipdate, 7)", "saved": "l_extendedprice * l_discount"},
        "aggregates": {"revenue": "sum(saved)"},
        "types": {"l_quantity": "int64", "l_extendedprice": "decimal(2)", "l_discount": "decimal(2)"},
    },
)
