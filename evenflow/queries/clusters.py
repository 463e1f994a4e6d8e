"""Correlation clustering: names of products that are alike, within blocks of stock codes."""

from evenflow.queries.builtin import BuiltInQuery

CLUSTERS = BuiltInQuery(
    name="clusters",
    what="clusters of like product names by block of stock codes, over a day",
    source="retail:tuples=4000,products=300,rate=0.02",
    data="4,000 purchases of two days in the format of Online Retail, generated",
    columns=("StockCode", "Description", "InvoiceDate"),
    fields={
        "key": "block",
        "time": "InvoiceDate",
        "time_unit": "iso",
        "window": "24h",
        "columns": {"block": "left(StockCode, 4)"},
        "aggregates": {"clusters": "clusters(Description)"},
        "types": {"Description": "string"},
    },
)
