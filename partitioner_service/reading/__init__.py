"""From the bytes of records to columns, compiled: a block is read in one pass, whatever its records are.

Admission rule: what judges and converts the bytes of records. Every record gets a verdict of its own in the same pass, so
bad ones cost about what good ones cost and never touch their neighbours. No Kafka, no settings of the service but
the query's columns, and no loop in Python over records.

`cells` is what formats have in common. `json_records`, `csv_records` and `text_records` find the cells of a block,
`numbers`, `strings` and `times` turn cells into columns, `reasons` says in words what is wrong.
"""
