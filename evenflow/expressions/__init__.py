"""SQL expressions of a query: what `where` and `[query.columns]` may say, and their values over columns of tuples.

sqlglot reads the text. `checked` refuses what is outside the table in `rules` and says what type the rest has. Polars'
SQL computes it (`engine`), and `evenflow verify` hands the same text to DuckDB: two implementations of one language. The
language is what both do alike (tests/unit/expressions compare them on random expressions):

* a whole number has up to 38 digits while it is computed with. A result that 64 bits do not hold makes the tuple
  unreadable. `int64` columns enter with 63 bits, so at most one product of two of them fits: more is refused beforehand;
* a decimal is exact. Its scales add up in a product, and a result has at most 18 digits;
* `/` divides as floating point, whatever is divided. By zero it is infinite, and an infinite or undefined result makes the
  tuple unreadable. `%` of zero is null;
* null is SQL's: unknown. `where` keeps a tuple where it is true, and drops it where it is false or null;
* what could stop a query in the middle of a stream (a cast of text to a number) or differs between engines in the last
  digit (logarithms, powers, rounding to even) is not in the language.

Admission rule: text and columns only, no records, no Kafka. Polars is imported where something is computed.
"""
