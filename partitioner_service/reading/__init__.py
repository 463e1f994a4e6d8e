"""From the bytes of records to columns, by compiled code that reads a block in one pass.

What judges and converts the bytes of records may live here. Every record gets a verdict of its own in the
same pass. So bad records cost about as much as good ones, and never harm their neighbours. Kafka may not be
used here, nor settings of the service other than the input's format and the query's columns. There is no loop
in Python over single records.

`cells` is what all formats have in common. `json`, `csv_records`, `text_records` and `registered`
(Avro and Protobuf) find the cells of a block. `elements` takes records apart. `numbers`, `strings`, `times`,
`typed_columns` and `leaves` turn cells into values, and `columns` into columns by name. `reasons` says in
words what is wrong.
"""
