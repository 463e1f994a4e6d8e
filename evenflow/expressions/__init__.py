"""SQL expressions of a query: what `where` and `[query.columns]` may say,
and their values over columns of tuples.

sqlglot reads the text. `parser` refuses whatever the table in `rules` does not have, and finds the type of
the rest. Polars' SQL computes it (`engine`). `evenflow verify` hands the same text to DuckDB (`oracle`). So
the language has two implementations, and it consists of what both compute alike (tests/unit/expressions
compare them on random expressions):

* a whole number has up to 38 digits during the computation. If a result does not fit into 64 bits, the tuple
  is unreadable. Columns of `int64` enter with 63 bits. One product of two of them fits, and a larger product
  is refused before the query starts;
* a decimal is exact. In a product the scales add up. A result has at most 18 digits;
* `/` divides as floating point, whatever its operands are. Division by zero gives infinity. An infinite or
  undefined result makes the tuple unreadable. `%` by zero gives null;
* null means "unknown", as in SQL. `where` keeps a tuple for which it is true, and drops a tuple for which it
  is false or null;
* the language has nothing that could stop a query in the middle of a stream (a cast of text to a number), and
  nothing that differs between the engines in the last digit (logarithms, powers, rounding to even).

Admission rule: text and columns only, no records, no Kafka. Polars is imported only where something is
computed.
"""
