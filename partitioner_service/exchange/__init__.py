"""The exchange: what the instances of one partitioner tell each other over `<query>.sync`.

`member` lives in the data plane's thread. It tells what this instance knows, and hears the tables.
`table_maker` lives on the control plane, in the one instance that owns input partition 0. It makes a table of
the messages of a round. `channel` stands between these two and the topic.

Nothing here decides a result: a record may be lost, late, twice, or anything else. So each is used or
counted.
"""
