"""Purchases in the format of UCI's Online Retail: CSV with a header. A row is one line of an invoice.

`retail:online-retail.csv.gz` reads a file. `retail:tuples=50000,products=2000,rate=1,seed=1` generates
purchases.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.generation.rank_laws import numbered_times
from evenflow.grammar.column_types import ColumnType
from evenflow.settings.word_options import WordOptions
from evenflow.sources.recorded import DataSet, Draw

COLUMNS: dict[str, ColumnType] = {
    "InvoiceNo": "string",
    "StockCode": "string",
    "Description": "string",
    "Quantity": "int64",
    "InvoiceDate": "string",
    "UnitPrice": "float64",
    "CustomerID": "string",
    "Country": "string",
}
_FIRST = 1_291_190_400
"""2010-12-01T08:00:00Z in seconds: the hour in which the data set begins."""
_LINES_OF_AN_INVOICE = 20


def purchases(words: WordOptions) -> pa.Table:
    """Generated purchases, `rate` per second. Some products sell far more than others."""
    draw = Draw.of(words, tuples=50_000, rate=1.0)
    products = words.integer("products", 2_000, least=1)
    product, invoice = draw.ranks(products, 0.8), np.arange(draw.tuples) // _LINES_OF_AN_INVOICE
    prices = np.round(draw.random.gamma(2.0, 1.5, products) + 0.1, 2)
    seconds = _FIRST + numbered_times(0, draw.tuples, rate=draw.rate) // 1000
    numbers = [str(number) for number in range(int(invoice[-1]) + 1)]
    columns = [
        draw.texts([str(536_365 + int(number)) for number in numbers], invoice),
        draw.texts([f"{20_000 + number}" for number in range(products)], product),
        draw.texts([f"PRODUCT {number}" for number in range(products)], product),
        draw.random.geometric(0.15, draw.tuples),
        pc.strftime(pa.array(seconds).cast(pa.timestamp("s")), format="%Y-%m-%d %H:%M:%S"),
        prices[product],
        draw.texts([f"{12_000 + int(number) % 4_000}" for number in numbers], invoice),
        draw.texts(["United Kingdom", "Germany", "France"], draw.ranks(3, 3.0)),
    ]
    return pa.table(columns, names=list(COLUMNS))


DATA_SET = DataSet(
    name="retail",
    summary="purchases in the format of Online Retail: a file, or generated",
    layout="one CSV file with a header, 8 columns, times as ISO 8601 text",
    licence="CC BY 4.0, as UCI says",
    columns=COLUMNS,
    key="StockCode",
    time="InvoiceDate",
    time_unit="iso",
    make=purchases,
    header=True,
)
FORMAT = DATA_SET.format()
