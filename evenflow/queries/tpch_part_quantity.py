"""TPC-H lineitem as 001 streams it: the quantity ordered of each part."""

from evenflow.queries.builtin import BuiltInQuery

TPCH_PART_QUANTITY = BuiltInQuery(
    name="tpch-part-quantity",
    what="quantity ordered of each part, over an hour that slides by a minute",
    source="tpch:scale=0.01",
    data="60,175 rows of lineitem at scale 0.01, made by tpchgen-cli at the first use",
    columns=("l_partkey", "streamed", "l_quantity"),
    fields={
        "key": "l_partkey",
        "time": "streamed",
        "time_unit": "ms",
        "window": "1h",
        "slide": "1m",
        "aggregates": {"orders": "count", "quantity": "sum(l_quantity)"},
        "types": {"l_partkey": "int64", "l_quantity": "int64"},
    },
)
