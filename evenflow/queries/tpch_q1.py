"""TPC-H Q1 as a stream: what was shipped, by return flag and line status."""

from evenflow.queries.builtin import BuiltInQuery

TPCH_Q1 = BuiltInQuery(
    name="tpch-q1",
    what="pricing summary by return flag and line status, over 28 days that slide by 7",
    source="tpch:scale=0.01",
    data="60,175 rows of lineitem at scale 0.01, made by tpchgen-cli at the first use",
    columns=(
        "l_returnflag",
        "l_linestatus",
        "l_shipdate",
        "l_quantity",
        "l_extendedprice",
        "l_discount",
        "l_tax",
    ),
    fields={
        "key": ["l_returnflag", "l_linestatus"],
        "time": "l_shipdate",
        "time_unit": "iso",
        "window": "28d",
        "slide": "7d",
        "columns": {
            "disc_price": "l_extendedprice * (1 - l_discount)",
            "charge": "disc_price * (1 + l_tax)",
        },
        "aggregates": {
            "sum_qty": "sum(l_quantity)",
            "sum_base_price": "sum(l_extendedprice)",
            "sum_disc_price": "sum(disc_price)",
            "sum_charge": "sum(charge)",
            "avg_qty": "mean(l_quantity)",
            "avg_price": "mean(l_extendedprice)",
            "avg_disc": "mean(l_discount)",
            "count_order": "count",
        },
        "types": {
            "l_quantity": "int64",
            "l_extendedprice": "decimal(2)",
            "l_discount": "decimal(2)",
            "l_tax": "decimal(2)",
        },
    },
)
