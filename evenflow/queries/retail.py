"""Online Retail: revenue of each product."""

from evenflow.queries.builtin import BuiltInQuery

RETAIL = BuiltInQuery(
    name="retail",
    what="revenue of each product, over a day that slides by an hour",
    source="retail",
    data="50,000 purchases in the format of Online Retail, generated",
    columns=("StockCode", "InvoiceDate", "Quantity", "UnitPrice"),
    fields={
        "key": "StockCode",
        "time": "InvoiceDate",
        "time_unit": "iso",
        "window": "24h",
        "slide": "1h",
        "columns": {"revenue": "Quantity * UnitPrice"},
        "aggregates": {"lines": "count", "revenue": "sum(revenue)"},
        "types": {"Quantity": "int64", "UnitPrice": "decimal(2)"},
    },
)
